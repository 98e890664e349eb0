// Package place finds places: where a request of one part or several fits, the
// first time or again, beside everything that is promised, with the stocks that it
// takes and the transfers of its data. It books nothing for good: it tries on the
// state and undoes it.
package place
