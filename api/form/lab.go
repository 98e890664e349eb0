package form

// Laboratory lists one's comparisons and logs, and tells the bounds of both.
type Laboratory struct {
	Comparisons []Comparison `json:"comparisons"` // the oldest first
	Logs        []Log        `json:"logs"`        // one's own, the oldest first
	MaxBytes    int64        `json:"max_bytes"`   // of a log
	KeptSeconds int64        `json:"kept_seconds"`
}

// Log is a log that was sent.
type Log struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Expires Time   `json:"expires"`
}

// Comparison is a comparison of schedulers.
type Comparison struct {
	ID    string `json:"id"`
	User  string `json:"user"`
	State string `json:"state"` // waiting, running, done, failed or cancelled
	// Log is the name of the log that is replayed; missing if it is what was requested of
	// the service.
	Log string `json:"log,omitempty"`
	// Done is how many of all Runs are done, those under way by their part; both 0 until
	// the log is read.
	Done    float64 `json:"done"`
	Runs    int     `json:"runs"`
	Command string  `json:"command"` // that does the same; empty until it is known
	// Notes say what of the log could not be used.
	Notes   []string `json:"notes"`
	Trouble string   `json:"trouble,omitempty"` // why it failed
	Made    Time     `json:"made"`
	Started Time     `json:"started,omitzero"`
	Ended   Time     `json:"ended,omitzero"`
	Expires Time     `json:"expires,omitzero"`
	Files   []string `json:"files"` // of the report
}

// ComparisonResults is what came of a comparison, in words for people. The numbers are in
// its files.
type ComparisonResults struct {
	Title     string             `json:"title"`
	Count     string             `json:"count"`
	Drawn     string             `json:"drawn"` // what the intervals are about
	Against   string             `json:"against"`
	Intervals bool               `json:"intervals"` // figures have them
	Sentence  string             `json:"sentence"`  // the main result; empty if nothing differs clearly
	Figures   []ComparedFigure   `json:"figures"`
	Rows      []ComparedRow      `json:"rows"`
	Best      []ComparedBest     `json:"best"`
	Drawings  []ComparisonSketch `json:"drawings"`
}

// ComparedFigure is a column of the rows.
type ComparedFigure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"` // of changes, where the number does not tell
}

// ComparedRow is a combination of what was compared, with a cell for each figure.
type ComparedRow struct {
	Name     string         `json:"name"`
	Baseline bool           `json:"baseline"`
	Cells    []ComparedCell `json:"cells"`
}

// ComparedCell is a figure, and its change against the baseline.
type ComparedCell struct {
	Value   string `json:"value"`
	Change  string `json:"change"`
	Verdict string `json:"verdict"` // better, worse, more or less, if the change is clear
}

// ComparedBest is the combination that does best by a figure.
type ComparedBest struct {
	Title  string `json:"title"`
	Where  string `json:"where"`
	Value  string `json:"value"`
	Change string `json:"change"`
}

// ComparisonSketch is a drawing: its files are Name.svg and Name.csv.
type ComparisonSketch struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Caption string `json:"caption"`
}
