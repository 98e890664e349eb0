// Package engine decides: it takes events, keeps the state of every calendar,
// reservation, pending request and timer, and answers with changes (to its own
// state) and effects (for the world to carry out). It reads no clock, does no
// I/O and draws no random numbers, so the same events always give the same
// decisions. Who supplies the events and carries out the effects — the
// service, the simulator, a replay — is not its business.
//
// Changes are the only writers of state: Apply decides what should happen,
// writes it down as changes, and folds them; folding the same changes into a
// fresh engine gives the same state, without deciding anything again.
package engine
