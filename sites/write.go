package sites

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// writtenSite is a site as Write has it.
type writtenSite struct {
	Name       string             `json:"name"`
	Pools      []writtenPool      `json:"pools"`
	Partitions []writtenPartition `json:"partitions,omitempty"`
	Software   []berth.Software   `json:"software,omitempty"`
	Storage    string             `json:"storage,omitempty"`
}

type writtenPool struct {
	Name    string        `json:"name"`
	PEs     berth.Count   `json:"pes"`
	Binding berth.Binding `json:"binding"`
	Speed   float64       `json:"speed,omitempty"`
}

type writtenPartition struct {
	Name        string       `json:"name"`
	Pool        string       `json:"pool"`
	PEs         *berth.PESet `json:"pes,omitempty"`
	MaxNPE      berth.Count  `json:"max_npe,omitempty"`
	MaxDuration string       `json:"max_duration,omitempty"`
}

// Write writes sites as a file that Open reads, for simulations of them: their pools,
// partitions, software and storage, without what PEs are made of, without links and without
// adapters. It is JSON, which is YAML. Errors are those of w, wrapped.
func Write(w io.Writer, list []berth.Site) error {
	file := struct {
		Sites []writtenSite `json:"sites"`
	}{Sites: []writtenSite{}}
	for i := range list {
		s := &list[i]
		written := writtenSite{Name: s.Name, Software: s.Software}
		for _, p := range s.Pools {
			written.Pools = append(written.Pools, writtenPool{Name: p.Name, PEs: p.PEs, Binding: p.Binding, Speed: float64(p.Speed) / float64(berth.StandardSpeed)})
		}
		for k := range s.Partitions {
			p := &s.Partitions[k]
			one := writtenPartition{Name: p.Name, Pool: p.Pool, MaxNPE: p.MaxNPE}
			if !p.PEs.Empty() {
				one.PEs = &p.PEs
			}
			if p.MaxDuration > 0 {
				one.MaxDuration = hpctime.Format(p.MaxDuration)
			}
			written.Partitions = append(written.Partitions, one)
		}
		if s.StorageMB > 0 {
			written.Storage = fmt.Sprintf("%d MB", s.StorageMB)
		}
		file.Sites = append(file.Sites, written)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(&file); err != nil {
		return fmt.Errorf("write sites file: %w", err)
	}
	return nil
}
