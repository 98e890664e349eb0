// Package engine decides: it takes events, keeps the state of every calendar,
// reservation, pending request and timer, and answers with changes of its state and
// effects that sites have to carry out. It reads no clock, does no I/O and draws no
// random numbers, so the same events always give the same decisions. Supplying the
// events and carrying out the effects is the duty of its drivers: the service, the
// simulator, a replay.
//
// Changes are the only writers of the state, which is kept in a package of its own:
// Apply decides what should happen, writes it down as changes, and folds them; folding
// the same changes into a fresh engine gives the same state, without deciding
// anything again.
package engine
