package workload

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/nearest"
)

// jdlMeaning is what an attribute is about. An ad may tell each once.
type jdlMeaning uint8

const (
	jdlNothing jdlMeaning = iota // read over
	jdlRefused                   // asks for what a booking cannot honour
	jdlID
	jdlUser
	jdlArrival
	jdlPEs
	jdlRun
	jdlWait
	jdlExpiry
	jdlDeadline
	jdlSoftware
	jdlVersion
	jdlLicences
	jdlMemory
	jdlStorage
	jdlAccelerators
	jdlPartition
	jdlType
)

// jdlAttributes is the language: each attribute by its customary spelling; the
// first name of a meaning stands in complaints about its absence.
var jdlAttributes = []struct {
	meaning jdlMeaning
	names   []string
}{
	{jdlID, []string{"JobName", "JobId", "Id", "edg_jobid"}},
	{jdlUser, []string{"CertificateSubject", "Owner", "User"}},
	{jdlArrival, []string{"SubmitTime", "Arrival"}},
	{jdlPEs, []string{"NodeNumber", "CpuNumber"}},
	{jdlRun, []string{"RunTime", "WallTime", "MaxWallTime", "MaxWallClockTime"}},
	{jdlWait, []string{"MaxWaitingTime", "WaitingTime"}},
	{jdlExpiry, []string{"ExpiryTime"}},
	{jdlDeadline, []string{"Deadline"}},
	{jdlSoftware, []string{"Software", "SoftwareName"}},
	{jdlVersion, []string{"SoftwareVersion"}},
	{jdlLicences, []string{"SoftwareLicences", "SoftwareLicenses", "Licences", "Licenses"}},
	{jdlMemory, []string{"Memory", "MemoryMB"}},
	{jdlStorage, []string{"Storage", "StorageMB", "DataSize", "DataSizeMB"}},
	{jdlAccelerators, []string{"GPUNumber", "Accelerators"}},
	{jdlPartition, []string{"QueueName", "Partition"}},
	{jdlType, []string{"Type", "JobType"}},
	{jdlRefused, []string{
		"Requirements", "CERequirements", "SubmitTo", "HostNumber", "SMPGranularity", "WholeNodes",
		"Parameters", "ParameterStart", "ParameterStep", "JobSteps", "PartitionNumber", "Nodes",
	}},
	{jdlNothing, []string{
		"AllowZippedISB", "Arguments", "CurrentStep", "DataAccessProtocol", "DataCatalog", "DataCatalogType",
		"DataRequirements", "Environment", "Epilogue", "EpilogueArguments", "Executable", "FuzzyRank", "HLRLocation",
		"InputData", "InputSandbox", "InputSandboxBaseURI", "InputSandboxDestFileName", "JobProvenance", "JobState",
		"LBAddress", "ListenerHost", "ListenerPipeName", "ListenerPort", "MyProxyServer", "NotificationType",
		"OutputData", "OutputSandbox", "OutputSandboxBaseDestURI", "OutputSandboxDestURI", "OutputSE",
		"PerusalFileEnable", "PerusalFilesDestURI", "PerusalTimeInterval", "Prologue", "PrologueArguments", "Rank",
		"ReplicaCatalog", "RetryCount", "ShallowRetryCount", "ShortDeadlineJob", "SignificantAttributes", "StdError",
		"StdInput", "StdOutput", "StorageIndex", "UserContact", "UserTags", "VirtualOrganisation",
	}},
}

var jdlMeanings, jdlNames = func() (meanings map[string]jdlMeaning, names []string) {
	meanings = make(map[string]jdlMeaning)
	for _, row := range jdlAttributes {
		for _, name := range row.names {
			meanings[strings.ToLower(name)] = row.meaning
			names = append(names, name)
		}
	}
	return meanings, names
}()

// jdlGiven is where an ad tells something, and under which name.
type jdlGiven struct {
	name string
	line int
}

// jdlAd is an ad under way.
type jdlAd struct {
	line      int
	id, user  string
	arrival   int64
	npe       int64
	run, wait berth.Duration
	expiry    int64
	deadline  int64
	needs     berth.Requirements
	given     map[jdlMeaning]jdlGiven
	skipped   map[string]int // line of each attribute that is read over, by lower-case name
}

// fault is a complaint about something that the ad tells, or leaves out.
func (a *jdlAd) fault(about jdlMeaning, value, want string) BadLine {
	bad := BadLine{Line: a.line, Value: shown([]byte(value)), Want: want}
	if given, is := a.given[about]; is {
		bad.Field, bad.Line = given.name, given.line
		return bad
	}
	for _, row := range jdlAttributes {
		if row.meaning == about {
			bad.Field = row.names[0]
		}
	}
	return bad
}

// set takes in an attribute.
func (a *jdlAd) set(name string, v jdlValue, line int) BadLine {
	bad := BadLine{Line: line, Field: shown([]byte(name)), Value: shown([]byte(v.text))}
	meaning, known := jdlMeanings[strings.ToLower(name)]
	if !known {
		bad.Want = "unknown attribute" + nearest.Hint(name, jdlNames)
		return bad
	}
	if bad.Want = a.once(meaning, name, line); bad.Want == "" {
		bad.Want = a.take(meaning, strings.ToLower(name), &v)
	}
	if bad.Want == "" {
		return BadLine{}
	}
	return bad
}

// once notes an attribute, and complains if its meaning is told already. Those
// that are read over or refused, and the types, are told apart by name.
func (a *jdlAd) once(meaning jdlMeaning, name string, line int) string {
	if meaning == jdlNothing || meaning == jdlRefused || meaning == jdlType {
		if a.skipped == nil {
			a.skipped = make(map[string]int)
		}
		lower := strings.ToLower(name)
		if first, twice := a.skipped[lower]; twice {
			return "given twice, first at line " + strconv.Itoa(first)
		}
		a.skipped[lower] = line
		return ""
	}
	if first, twice := a.given[meaning]; twice {
		return "given twice, first at line " + strconv.Itoa(first.line) + " as " + first.name
	}
	a.given[meaning] = jdlGiven{name: name, line: line}
	return ""
}

// take takes in a value and returns what is wrong with it, or "".
func (a *jdlAd) take(meaning jdlMeaning, name string, v *jdlValue) string {
	switch meaning {
	case jdlID:
		return v.name(&a.id)
	case jdlUser:
		return v.name(&a.user)
	case jdlSoftware:
		return v.name(&a.needs.Software)
	case jdlVersion:
		return v.name(&a.needs.Version)
	case jdlPartition:
		return v.name(&a.needs.Partition)
	case jdlArrival:
		return v.integer(&a.arrival, -maxNumber, maxNumber)
	case jdlExpiry:
		return v.integer(&a.expiry, -maxNumber, maxNumber)
	case jdlDeadline:
		return v.integer(&a.deadline, -maxNumber, maxNumber)
	case jdlPEs:
		return v.integer(&a.npe, 1, berth.MaxPEs)
	case jdlRun:
		return v.duration(&a.run, 1, name == "maxwallclocktime")
	case jdlWait:
		return v.duration(&a.wait, 0, false)
	case jdlLicences:
		return v.count(func(n int64) { a.needs.Licences = berth.Count(n) })
	case jdlAccelerators:
		return v.count(func(n int64) { a.needs.Accelerators = int(n) })
	case jdlMemory:
		return v.megabytes(&a.needs.MemoryMB, strings.HasSuffix(name, "mb"))
	case jdlStorage:
		return v.megabytes(&a.needs.StorageMB, strings.HasSuffix(name, "mb"))
	case jdlType:
		return v.jobType(name)
	case jdlRefused:
		return v.harmless(name)
	}
	return ""
}

// name takes a string that names something.
func (v *jdlValue) name(to *string) string {
	switch {
	case v.kind != jdlString:
		return "want a string, in double quotes"
	case v.text == "":
		return "empty; want a name, or leave the attribute out"
	case hasControl(v.text):
		return "holds a control character"
	}
	*to = v.text
	return ""
}

func (v *jdlValue) integer(to *int64, low, high int64) string {
	if v.kind != jdlNumber || strings.Contains(v.text, ".") {
		return "want an integer without quotes"
	}
	n, _ := parseNumber([]byte(v.text)) // the lexer has found it a number
	if n.whole < low || n.whole > high {
		return "want an integer from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)
	}
	*to = n.whole
	return ""
}

func (v *jdlValue) count(take func(n int64)) string {
	var n int64
	want := v.integer(&n, 0, math.MaxInt32)
	take(n)
	return want
}

// duration takes whole seconds without quotes, as all times of a workload are,
// or a string with units. A name whose numbers are minutes elsewhere needs them.
func (v *jdlValue) duration(to *berth.Duration, low int64, minutes bool) string {
	if v.kind == jdlString {
		d, err := hpctime.Parse(v.text)
		if err != nil {
			return badRequest(err).Want
		}
		if int64(d) < low {
			return "want at least " + strconv.FormatInt(low, 10) + " s"
		}
		*to = d
		return ""
	}
	if v.kind == jdlNumber && minutes {
		return "of what? The grid's information system counts it in minutes, this file otherwise in seconds; write it with a unit, such as \"" + v.text + "m\""
	}
	var seconds int64
	if want := v.integer(&seconds, low, berth.TimeLimit-1); want != "" {
		return want + ", which is seconds, or a string such as \"2h30m\""
	}
	*to = berth.Duration(seconds)
	return ""
}

// megabytes takes a size in megabytes without quotes if the attribute's name
// says so, and otherwise a string with a unit.
func (v *jdlValue) megabytes(to *int64, plain bool) string {
	if plain {
		return v.integer(to, 0, berth.MaxMegabytes-1)
	}
	if v.kind != jdlString {
		return "want a string with a unit, such as \"2GiB\"; for plain megabytes give the attribute's name an MB at its end"
	}
	n, err := bytesize.Needed(v.text)
	if err != nil {
		return badRequest(err).Want
	}
	*to = n
	return ""
}

// jobType refuses ads that are not one job.
func (v *jdlValue) jobType(attribute string) string {
	kinds, singles := v.items, []string{"normal", "mpich", "mpi", "openmpi", "interactive", "checkpointable"}
	if attribute == "type" {
		singles = singles[:0]
	}
	singles = append(singles, "job")
	if v.kind == jdlString {
		kinds = []string{v.text}
	}
	if len(kinds) == 0 {
		return "want a string, or a list of strings"
	}
	for _, kind := range kinds {
		if !slices.Contains(singles, strings.ToLower(kind)) {
			return "not one job; want " + strings.Join(singles, ", ")
		}
	}
	return ""
}

// harmless refuses what a booking cannot honour, unless it asks for nothing.
func (v *jdlValue) harmless(attribute string) string {
	word := strings.ToLower(v.text)
	if v.kind == jdlName && (word == "undefined" || attribute == "requirements" && word == "true" || attribute == "wholenodes" && word == "false") {
		return ""
	}
	if strings.HasSuffix(attribute, "requirements") {
		return "expressions are not evaluated, and a promise that disregards them would be worth nothing; say it by Software, Memory, Storage, Partition and the like"
	}
	return "a booking cannot honour it; leave it out, or describe each job by an ad of its own"
}

// request returns the ad as a request: ready at its arrival, and due at the
// earliest of arrival + waiting limit + run time, expiry + run time, and
// deadline, of those that are given.
func (a *jdlAd) request() (berth.Request, BadLine) {
	if _, is := a.given[jdlRun]; !is {
		return berth.Request{}, a.fault(jdlRun, "", "missing; an ad needs its run time")
	}
	deadline, found := int64(math.MaxInt64), false
	for _, limit := range []struct {
		about jdlMeaning
		end   int64
	}{
		{jdlWait, a.arrival + int64(a.wait) + int64(a.run)},
		{jdlExpiry, a.expiry + int64(a.run)},
		{jdlDeadline, a.deadline},
	} {
		if _, is := a.given[limit.about]; is {
			deadline, found = min(deadline, limit.end), true
		}
	}
	if !found {
		return berth.Request{}, a.fault(jdlWait, "", "missing; an ad needs a limit: MaxWaitingTime, ExpiryTime or Deadline")
	}
	request := berth.Rigid(a.id, berth.Time(a.arrival), berth.Time(a.arrival), berth.Time(deadline), berth.Count(a.npe), a.run)
	request.User, request.Requirements = a.user, a.needs
	if err := request.Validate(); err != nil {
		bad := badRequest(err)
		return berth.Request{}, a.fault(a.about(bad.Field), "", bad.Want)
	}
	return request, BadLine{}
}

// about tells which attribute of the ad a field of the request came from.
func (a *jdlAd) about(field string) jdlMeaning {
	switch field {
	case "arrival":
		return jdlArrival
	case "version":
		return jdlVersion
	case "licences":
		return jdlLicences
	case "accelerators":
		return jdlAccelerators
	case "deadline":
		for _, limit := range []jdlMeaning{jdlDeadline, jdlExpiry} {
			if _, is := a.given[limit]; is {
				return limit
			}
		}
		return jdlWait
	}
	return jdlID
}
