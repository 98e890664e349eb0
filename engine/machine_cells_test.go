package engine_test

import "slices"

// rule says which cells of the table cannot be reached: those of
// one of the outcomes, all if there are none, with one of the features and, if there
// are any, one of the others.
type rule struct {
	why      string
	features []feature
	with     []feature
	outcomes []outcome
}

var (
	ofJobs     = []outcome{outPlanned, outRequeued, outShortened}
	ofPromises = []outcome{outLapsed, outLost, outMoved, outResized, outModified, outKept, outStaged}
	events     = []feature{
		onTimer, onOther, onSubmit, onCancel, onConfirm, onModify, onProlong, onShow, onAvoid, onFinish, onDown, onAnnounced, onUp, onForecast, onSettle,
	}
)

// rules lists why cells cannot be reached.
var rules = []rule{
	// Of what is asked for.
	{
		"a job has one part of one variant, and no promise that could be held, given up, lack PEs or be extended",
		[]feature{isJob, isLimited},
		[]feature{isParts, isMoldable, isHeld, isNoShow, isDegraded, isProlonged},
		nil,
	},
	{"a job has no promise", []feature{isJob, isLimited}, nil, append(ofPromises, outDemoted)},
	{"only jobs wait in the queue", []feature{isParts, isMoldable, isHeld, isNoShow, isDegraded, isProlonged}, nil, ofJobs},
	{"a job has one part of one variant", []feature{isParts, isMoldable}, nil, []outcome{outDemoted}},
	{"what is not promised has no place", []feature{atLate, atManaged, isDegraded, isProlonged}, nil, []outcome{outRefused, outDemoted, outPlanned}},
	{"a new promise is whole", []feature{isDegraded, isProlonged}, nil, []outcome{outAccepted}},
	{"several parts fail together, and only one can last longer", []feature{isParts}, []feature{isDegraded, isProlonged}, nil},
	{"several parts fail together, and only one can last longer", []feature{isParts}, nil, []outcome{outResized, outExtended}},
	{"PEs have numbers where they are chosen", []feature{isEligible}, []feature{atLate}, []outcome{outResized, outExtended, outRequeued, outShortened}},

	// Of the configuration.
	{"one or the other", []feature{hasStageBefore}, []feature{hasStageHold}, nil},
	{"one or the other", []feature{hasInstant}, []feature{hasPeriod}, nil},
	{"one or the other", []feature{hasConservative}, []feature{hasOtherPass}, nil},
	{"one or the other", []feature{hasExtend}, []feature{hasDelay}, nil},
	{"one or the other", []feature{hasMatch}, []feature{hasBatch, hasUnaware}, nil},
	{"only the conservative pass plans", []feature{hasOtherPass}, nil, []outcome{outPlanned}},
	{"a batch matcher lets requests wait itself", []feature{hasBatch, hasUnaware}, nil, []outcome{outDemoted}},
	{"with PEs held for a transfer the uplink is taken as long as they are", []feature{hasUplink}, []feature{hasStageHold}, []outcome{outStaged}},
	{"PEs are held while the data come", []feature{hasStageHold}, []feature{onForecast}, []outcome{outKept}},

	// Of events.
	{"one event at a time", events, events, nil},
	{"a submission is decided, or waits", []feature{onSubmit}, nil, except(outAccepted, outRefused, outDemoted, outPlanned)},
	{"it is over", []feature{onCancel}, nil, except(outCancelled)},
	{"it is in use", []feature{onConfirm, onShow}, nil, except(outUsed)},
	{"it is changed or not", []feature{onModify}, nil, except(outModified, outKept)},
	{"it lasts longer or not", []feature{onProlong}, nil, except(outExtended, outKept, outResized, outMoved)},
	{"it has another place, other PEs or none", []feature{onAvoid}, nil, except(outMoved, outResized, outKept)},
	{"it is over", []feature{onFinish}, nil, except(outEnded)},
	{"an outage takes PEs", []feature{onDown}, nil, except(outFailed, outLost, outMoved, outResized, outRequeued)},
	{"what runs goes on until the outage begins", []feature{onAnnounced}, nil, except(outLost, outMoved, outResized, outRequeued)},
	{"PEs that are back go to what lacks them", []feature{onUp}, nil, except(outMoved, outResized)},
	{"a forecast is about data", []feature{onForecast}, nil, except(outStaged, outMoved, outKept)},
	{"a site has done what it was told", []feature{onSettle}, nil, except()},
	{"time asks for nothing", []feature{onTimer}, nil, []outcome{outCancelled, outModified, outKept, outUsed, outStaged}},
	{"others get what is free, and no more", []feature{onOther}, nil, except(outAccepted, outPlanned, outShortened, outMoved, outResized, outRefused, outEnded, outRequeued)},
	{"what ends on an event about others is a job that yields", []feature{onOther}, []feature{isParts, isMoldable, isHeld, isNoShow, isDegraded, isProlonged}, []outcome{outEnded}},
	{"only single parts are repaired or delayed", []feature{isParts}, []feature{onTimer, onOther, onUp}, []outcome{outMoved}},
	// Without an event only runOn, of overrun.go, loses a promise. It asks InTheWay to leave
	// those of several parts alone, and displaces none where OverrunRunOn is the mode.
	{"an overrun displaces no reservation of several parts", []feature{isParts}, []feature{onTimer}, []outcome{outLost}},
	{"with time a promise is lost only to an overrun that delays", []feature{hasExtend}, []feature{onTimer}, []outcome{outLost}},
	{"what is gathered is decided later", []feature{onSubmit}, []feature{hasInstant, hasPeriod}, []outcome{outAccepted, outDemoted, outPlanned}},
	{"what is gathered is decided later", []feature{onOther}, []feature{hasInstant, hasPeriod}, []outcome{outRefused}},
	{"a job has no promise", []feature{isJob, isLimited}, []feature{onProlong, onConfirm}, nil},
	{"only one part can last longer", []feature{isParts}, []feature{onProlong}, nil},
	{"what can lack PEs outlives them", []feature{isDegraded}, []feature{onDown}, []outcome{outFailed}},
}

// except returns all outcomes but some.
func except(some ...outcome) []outcome {
	var list []outcome
	for out := range outcomes {
		if !slices.Contains(some, out) {
			list = append(list, out)
		}
	}
	return list
}

// excluded says of every cell why it cannot be reached, nothing if it can.
var excluded = func() *[outcomes][features][features]string {
	t := new([outcomes][features][features]string)
	for i := range rules {
		r := &rules[i]
		for _, out := range r.of() {
			for _, f := range r.features {
				with := r.with
				if with == nil {
					with = all
				}
				for _, g := range with {
					if f != g || r.with == nil {
						t[out][f][g], t[out][g][f] = r.why, r.why
					}
				}
			}
		}
	}
	return t
}()

func (r *rule) of() []outcome {
	if r.outcomes == nil {
		return except()
	}
	return r.outcomes
}

// all lists all features.
var all = func() (list []feature) {
	for f := range features {
		list = append(list, f)
	}
	return list
}()
