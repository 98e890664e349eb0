package postgres

// SkewOf is for tests.
var SkewOf = skewOf
