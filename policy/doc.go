// Package policy holds what fills the slots of a scheduling pass: small pure
// values, one file each, listed in visible tables by the names that commands,
// files and the API use. A policy keeps no reference to what it is shown and
// changes nothing; the engine asks, the policy answers.
package policy
