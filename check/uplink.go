package check

// sweepUplink checks what stagings move together, and that they move what was
// asked for.
func (c *checker) sweepUplink(s *sweeper) {
	records := c.file.records
	asked, moved, said, late := c.data(), map[stay]int64{}, map[stay]int32{}, map[stay]bool{}
	u := use{
		class: Uplink, amounts: make([]int64, len(records)),
		size: func(int32) int64 { return c.opts.Uplink },
		name: func(int32) string { return "kB/s of the uplink" },
	}
	for i := range records {
		rec := &records[i]
		if rec.kind != staging || rec.end < rec.start {
			continue
		}
		at := stay{rec.id, rec.site}
		kilobytes := asked[at]
		if rec.has(fKilobytes) {
			kilobytes = rec.kilobytes
			if _, seen := said[at]; !seen {
				said[at] = int32(i)
			}
			moved[at] += kilobytes
			late[at] = late[at] || rec.expectedEnd() != rec.end
		} else if rec.end == rec.start && rec.expectedEnd() != rec.end {
			kilobytes = 0 // it never began
		}
		switch length := rec.end - rec.start; {
		case kilobytes < 0:
			c.add1(Uplink, i, "%d kilobytes; a staging moves 0 or more", kilobytes)
		case length == 0 && kilobytes > 0:
			c.add1(Uplink, i, "%d kilobytes in no time", kilobytes)
		case length > 0:
			u.amounts[i] = (kilobytes + length - 1) / length
			u.events = append(u.events, event{rec.start, 0, int32(i)}, event{rec.end, 0, ^int32(i)})
		}
	}
	for i := range records {
		rec := &records[i]
		at := stay{rec.id, rec.site}
		if first, is := said[at]; is && first == int32(i) && moved[at] < asked[at] && !late[at] {
			c.add1(Uplink, i, "%d kilobytes are moved to %s in all, and %s has %d", moved[at], siteText(rec.site), printable(rec.id), asked[at])
		}
	}
	s.sweep(u)
}

// data returns how many kilobytes each id wants at each site: the most that one
// of its lines asks for.
func (c *checker) data() map[stay]int64 {
	asked := map[stay]int64{}
	for i := range c.file.records {
		rec := &c.file.records[i]
		n, wants := rec.wants()
		if !wants || !rec.granted() {
			continue
		}
		at := stay{rec.id, rec.site}
		asked[at] = max(asked[at], 1000*n.storage)
	}
	return asked
}
