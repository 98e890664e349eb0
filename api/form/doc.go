// Package form holds the forms in which the service and its clients speak over
// HTTP: requests, reservations, offers, sites, events, problems. Field names are
// those of a schedule file. It sends nothing and decides nothing.
package form
