// Package workflow plans workflows of moldable tasks into reservations among
// those that others hold already: for the earliest finish, or to meet a
// deadline with few CPU-hours (Aida and Casanova, "Scheduling mixed-parallel
// applications with advance reservations", HPDC 2008). It reads no files, and
// it books nothing but on a draft it is given.
package workflow
