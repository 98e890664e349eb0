// Package site is the contract between Berth and a resource manager: what a
// site tells about itself and its state, what can be asked of it, under which
// names, and how its failures are told apart. It reaches no site itself; the
// adapters below it do, and sitetest holds all of them to the same promises.
//
// An adapter implements Observer, and then as much as it can of Booker, Runner,
// Launcher, Drainer and Doctor. All of them may be called by several goroutines
// at once. Times are Unix seconds in UTC.
package site
