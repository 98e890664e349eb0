// Package service runs the engine for people: a core that takes one input at a
// time and says what follows from it, and a host around it that has the clock,
// the journal, the sites and the clients. Nothing is answered before it is
// durable. It knows no HTTP (package api does) and decides nothing about
// placements (the engine does).
package service
