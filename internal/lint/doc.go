// Package lint holds the house rules that no general linter knows, as tests:
// which package may import which, what a pure room may touch and write, where
// the order of a map may matter, which types a public signature may name, how
// long a file may grow, and what no committed file may name. It has no code outside
// its tests and does not judge style.
package lint
