package state

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
)

// fill sets every field that a value has to something that is not zero.
func fill(v reflect.Value, n *int64) {
	*n++
	if v.Type() == reflect.TypeFor[berth.PESet]() {
		v.Set(reflect.ValueOf(berth.NewPESet(berth.Run{Lo: berth.PE(*n), Hi: berth.PE(*n + 2)})))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 3)
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		v.SetInt(*n)
	}
}

// Every field of the state is written and read.
func TestEveryFieldOfTheStateIsWritten(t *testing.T) {
	var s, again saved
	n := int64(0)
	fill(reflect.ValueOf(&s).Elem(), &n)
	if err := decodeSaved(encodeSaved(&s), &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("read back it is\n%+v, want\n%+v", again, s)
	}
}
