package service

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// Audited is what a principal asked for, as it is on record.
type Audited struct {
	Number uint64 // of the record
	At     berth.Time
	By     Origin
	// Kind is what was asked for: one of AuditKinds, or empty of what was answered without a decision.
	Kind engine.EventKind
	ID   string // of what it was about; empty if it is about no reservation, workflow, receiver of notices or maintenance
}

// What is asked for about receivers of notices, beside the kinds of events.
const (
	auditAddReceiver    engine.EventKind = "add_receiver"
	auditChangeReceiver engine.EventKind = "change_receiver"
	auditRotateReceiver engine.EventKind = "rotate_receiver"
	auditTestReceiver   engine.EventKind = "test_receiver"
	auditResendNotices  engine.EventKind = "resend_notices"
	auditRemoveReceiver engine.EventKind = "remove_receiver"
)

// What is asked for about maintenance.
const (
	auditAddMaintenance    engine.EventKind = "add_maintenance"
	auditChangeMaintenance engine.EventKind = "change_maintenance"
	auditRemoveMaintenance engine.EventKind = "remove_maintenance"
)

// AuditKinds lists what can be asked for: the kinds of events, and what is about receivers of notices and maintenance.
func AuditKinds() []engine.EventKind {
	return append(engine.EventKinds(), auditAddReceiver, auditChangeReceiver, auditRotateReceiver, auditTestReceiver, auditResendNotices, auditRemoveReceiver,
		auditAddMaintenance, auditChangeMaintenance, auditRemoveMaintenance)
}

// AuditFilter chooses from what was asked for. Empty fields choose all.
type AuditFilter struct {
	User, Token, Address, ID string
	Kind                     engine.EventKind
	Since, Until             berth.Time // from Since on and before Until
	// After is the number of the record that the page begins behind, and Limit the most that it has.
	After uint64
	Limit int
}

// auditAtOnce is how many records are looked at for one page: about a second.
const auditAtOnce = 100_000

// Audit returns who asked for what, in the order of the records that are kept. next is the After of the page behind, 0 if
// there is none; a page may have fewer than asked for, for it looks at a bounded number of records. Errors are of code Denied: only an operator of all sites
// may ask. Cost: the records that are looked at, beside the loop.
func (h *Host) Audit(ctx context.Context, by Principal, f AuditFilter) (list []Audited, next uint64, looked int, err error) {
	if !by.Can(Operator) {
		return nil, 0, 0, berth.Errorf(berth.Denied, "role", "only an operator sees who asked for what; ask with an operator's token")
	}
	if !by.Sites.All() {
		return nil, 0, 0, berth.Errorf(berth.Denied, "sites", "only an operator of all sites sees who asked for what, which is of all of them")
	}
	err = whileKept(func() error {
		begin := journal.Position{}
		if c, drops := h.options.Journal.(journal.Compactor); drops {
			if begin, err = c.Begin(ctx); err != nil {
				return err
			}
		}
		from := max(begin.Number, f.After) + 1
		if f.Since > 0 {
			if from, err = h.recordSince(ctx, from, f.Since, fewRecords); err != nil {
				return err
			}
		}
		var n int
		list, next, n, err = audit(ctx, h.options.Journal, from, &f)
		looked += n
		return err
	})
	return list, next, looked, err
}

// audit reads the records from one on.
func audit(ctx context.Context, log journal.Reader, from uint64, f *AuditFilter) (list []Audited, next uint64, looked int, err error) {
	var decoder record.Decoder
	for rec, err := range log.Read(ctx, from) {
		switch {
		case err != nil:
			return nil, 0, looked, err
		case f.Until > 0 && rec.At >= f.Until:
			return list, 0, looked, ctx.Err()
		case looked == auditAtOnce, len(list) == f.Limit:
			return list, rec.Number - 1, looked, ctx.Err()
		}
		looked++
		if len(rec.Event) == 0 || rec.Event[0] != askedInput && rec.Event[0] != hookInput && rec.Event[0] != maintenanceInput || rec.At < f.Since {
			continue
		}
		in, err := parseInput(rec.Event, &decoder)
		if err != nil {
			return nil, 0, looked, err
		}
		a := Audited{Number: rec.Number, At: rec.At, By: in.asked.by, ID: in.asked.id}
		switch {
		case in.hooks != nil:
			a.By = in.hooks.by
			a.Kind, a.ID = in.hooks.audited()
		case in.maintenance != nil:
			a.By = in.maintenance.by
			a.Kind, a.ID = in.maintenance.audited()
		case in.event != nil:
			a.Kind = in.event.Kind
		}
		if f.chooses(&a) {
			list = append(list, a)
		}
	}
	return list, 0, looked, ctx.Err()
}

// audited returns what was asked for about which receiver; empty if it was not asked for.
func (n *hookNews) audited() (kind engine.EventKind, id string) {
	switch {
	case len(n.put) > 0:
		if kind = n.kind; kind == "" { // of a journal from before it was noted
			kind = auditChangeReceiver
		}
		return kind, n.put[0].ID
	case len(n.removed) > 0:
		return auditRemoveReceiver, n.removed[0]
	case len(n.tests) > 0:
		return auditTestReceiver, n.tests[0]
	case len(n.again) > 0:
		return auditResendNotices, n.again[0].hook
	}
	return "", ""
}

func (f *AuditFilter) chooses(a *Audited) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return a.By != (Origin{}) && is(f.User, a.By.User) && is(f.Token, a.By.Token) && is(f.Address, a.By.Address) && is(f.ID, a.ID) && is(string(f.Kind), string(a.Kind))
}
