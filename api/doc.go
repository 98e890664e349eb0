// Package api offers the service over HTTP: REST under /v1, its description as
// OpenAPI 3.1, events as they happen, metrics and health. It says who asks, reads
// what is asked, bounds its size and rate, and turns answers and errors into
// forms and statuses; it is the only room that knows HTTP, and decides nothing.
package api
