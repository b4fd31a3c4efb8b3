// Package tidemill is for authors of stateful stream processors in Go: handlers that the host calls per grouping key,
// with state, timers and output.
//
// A processor is a struct with [Processor]'s two methods, registered in an init function:
//
//	type Visit struct {
//		Page string
//	}
//
//	type Visits struct {
//		User     string
//		Visits   int64
//		LastPage string
//	}
//
//	type Counter struct {
//		visits tidemill.Value[int64]
//	}
//
//	func (c *Counter) Init(h *tidemill.Handle) error {
//		return h.State("visits", &c.visits)
//	}
//
//	func (c *Counter) HandleInputRows(user string, rows *tidemill.Rows[Visit], _ *tidemill.Timers, out *tidemill.Out[Visits]) error {
//		visits, _, err := c.visits.Get()
//		if err != nil {
//			return err
//		}
//		var lastPage string
//		for row := range rows.All() {
//			visits++
//			lastPage = row.Page
//		}
//		if err := c.visits.Update(visits); err != nil {
//			return err
//		}
//		return out.Emit(Visits{User: user, Visits: visits, LastPage: lastPage})
//	}
//
//	func init() { tidemill.Register(&Counter{}) }
//
//	func main() {}
//
// # Rows
//
// A struct is a row; its exported fields are the columns. A field's column is its name in snake case (LastPage is
// last_page, UserID user_id), or what the tag says: `tidemill:"time_hour"`; `tidemill:"-"` is no column. A pointer makes
// the column nullable; nil slices and maps are empty, not NULL. What is no struct is a row of one column. README.md has
// the table of types.
//
// Text of keys and input rows points into memory of the host's chunk, which stays as long as the text is in use. Keep a
// copy (strings.Clone) of what lives long, or it holds half a megabyte.
package tidemill
