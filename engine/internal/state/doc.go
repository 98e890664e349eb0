// Package state is what the engine remembers: the calendars of pools and stocks,
// the ledger of live reservations, pending requests and jobs with their plans,
// outages, forecasts, timers and the outbox. Fold applies a change to it; a Trial
// tries something and undoes it. There is no third way to write it, and what it
// returns to readers has no exported fields that lead back into it. It decides
// nothing.
package state
