package tidemill

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
)

// program runs the phases of a batch on a processor, as the host calls them.
type program[K, I, O, S any] struct {
	registered Processor[K, I, O]
	// nil for a processor that takes no initial state.
	takesInitialState func(Processor[K, I, O]) initialStateHandler[K, S]

	// Of the batch in hand.
	session   *session.Session
	processor Processor[K, I, O]
	expired   TimerHandler[K, O]
	initial   initialStateHandler[K, S]

	keys          *row.Plan
	initialStates *row.Plan
	timerRows     *row.Plan

	key    K
	rows   Rows[I]
	timers Timers
	out    Out[O]
}

func register[K, I, O, S any](p Processor[K, I, O], takesInitialState func(Processor[K, I, O]) initialStateHandler[K, S]) {
	contract.Register(&program[K, I, O, S]{registered: p, takesInitialState: takesInitialState})
}

// Init is the begin of a batch.
func (p *program[K, I, O, S]) Init(host contract.Host, query contract.Query) (plan contract.Plan, failure *contract.Failure) {
	defer func() {
		if panicked := recover(); panicked != nil {
			failure = caught(panicked, nil)
		}
	}()
	plan, err := p.init(host, query)
	if err != nil {
		return plan, failureOf(err, nil)
	}
	return plan, nil
}

func (p *program[K, I, O, S]) init(host contract.Host, query contract.Query) (plan contract.Plan, err error) {
	if err := p.makeProcessor(); err != nil {
		return plan, err
	}
	if plan, err = p.plan(query); err != nil {
		return plan, err
	}
	s := session.New(host, query.TimeMode)
	p.session, p.rows.session, p.out.session, p.timers = s, s, s, Timers{session: s}
	return plan, p.processor.Init(&Handle{session: s, query: publicQuery(query)})
}

// makeProcessor makes a processor for this batch: a copy of the one that was registered, so that a test's batches know
// nothing of each other, as a component's do not.
func (p *program[K, I, O, S]) makeProcessor() error {
	p.processor = p.registered
	if registered := reflect.ValueOf(p.registered); registered.Kind() == reflect.Pointer {
		fresh := reflect.New(registered.Type().Elem())
		fresh.Elem().Set(registered.Elem())
		p.processor = fresh.Interface().(Processor[K, I, O])
	}
	t := reflect.TypeOf(p.processor)
	var handles bool
	if p.expired, handles = p.processor.(TimerHandler[K, O]); !handles {
		if method, exists := t.MethodByName("HandleExpiredTimer"); exists {
			return wrongMethod(method, reflect.TypeFor[TimerHandler[K, O]]())
		}
	}
	if _, closes := p.processor.(Closer); !closes {
		if method, exists := t.MethodByName("Close"); exists {
			return wrongMethod(method, reflect.TypeFor[Closer]())
		}
	}
	if p.takesInitialState != nil {
		p.initial = p.takesInitialState(p.processor)
	}
	return nil
}

func wrongMethod(method reflect.Method, wanted reflect.Type) error {
	return errorOf(&contract.Fault{Code: contract.SchemaMismatch,
		Message: fmt.Sprintf("the method %s is %v, and has to be as in %v: %v", method.Name, method.Type, wanted, wanted.Method(0).Type)})
}

func (p *program[K, I, O, S]) plan(query contract.Query) (plan contract.Plan, err error) {
	var fault *contract.Fault
	if p.keys, fault = planOf[K](); fault != nil {
		return plan, inType("grouping key", fault)
	}
	if p.rows.plan, fault = planOf[I](); fault != nil {
		return plan, inType("input", fault)
	}
	if p.out.plan, fault = planOf[O](); fault != nil {
		return plan, inType("output", fault)
	}
	p.timerRows, _ = planOf[int64]()
	plan.Output = p.out.plan.Schema()
	if plan.Key, fault = p.keys.SchemaAt("grouping key", query.Key); fault != nil {
		return plan, errorOf(fault)
	}
	if plan.Columns, fault = p.rows.plan.SchemaAt("input", query.Input); fault != nil {
		return plan, errorOf(fault)
	}
	if query.InitialState == nil {
		return plan, nil
	}
	if p.initial == nil {
		return plan, NewError(contract.InitialStateNotHandled, "the query has an initial state, but the processor takes none: "+
			"it needs a method HandleInitialState, and to be registered by RegisterWithInitialState")
	}
	if p.initialStates, fault = planOf[S](); fault != nil {
		return plan, inType("initial state", fault)
	}
	wanted, fault := p.initialStates.SchemaAt("initial state", *query.InitialState)
	plan.InitialState = &wanted
	return plan, errorOf(fault)
}

func inType(what string, fault *contract.Fault) error {
	fault.Message = "the " + what + ": " + fault.Message
	return errorOf(fault)
}

// HandleInputRows is the phase of input rows.
func (p *program[K, I, O, S]) HandleInputRows(time contract.Time) *contract.Failure {
	return p.phase(time, func() error {
		return p.processor.HandleInputRows(p.key, &p.rows, &p.timers, &p.out)
	})
}

// HandleExpiredTimer is the phase of timers.
func (p *program[K, I, O, S]) HandleExpiredTimer(time contract.Time) *contract.Failure {
	return p.phase(time, func() error {
		p.timers.beginGroup()
		return eachRow(p.session, p.timerRows, func(expiryMs int64) error {
			fires, fault := p.timers.beginFiring(expiryMs)
			if fault != nil || !fires {
				return errorOf(fault)
			}
			defer p.timers.endFiring()
			if p.expired == nil {
				return nil
			}
			return p.expired.HandleExpiredTimer(p.key, expiryMs, &p.timers, &p.out)
		})
	})
}

// HandleInitialState is the phase of the initial state.
func (p *program[K, I, O, S]) HandleInitialState(time contract.Time) *contract.Failure {
	return p.phase(time, func() error {
		return eachRow(p.session, p.initialStates, func(state S) error {
			return p.initial.HandleInitialState(p.key, state, &p.timers)
		})
	})
}

// Close is the end of the batch.
func (p *program[K, I, O, S]) Close() (failure *contract.Failure) {
	defer func() {
		if panicked := recover(); panicked != nil {
			failure = caught(panicked, nil)
		}
	}()
	if closer, closes := p.processor.(Closer); closes {
		if err := closer.Close(); err != nil {
			return failureOf(err, nil)
		}
	}
	return nil
}

// phase calls handle for each group. A panic is recovered here, once per call and not per group.
func (p *program[K, I, O, S]) phase(time contract.Time, handle func() error) (failure *contract.Failure) {
	s := p.session
	defer func() {
		if panicked := recover(); panicked != nil {
			failure = caught(panicked, s.InHand())
		}
	}()
	s.Begin()
	p.timers.time = time
	for {
		more, fault := s.NextGroup()
		if fault == nil && more {
			fault = p.keys.Decode(s.Key(), unsafe.Pointer(&p.key), true)
		}
		if fault != nil {
			return failureOf(errorOf(fault), s.InHand())
		}
		if !more {
			return nil
		}
		if err := handle(); err != nil {
			return failureOf(err, s.InHand())
		}
		if fault := s.Check(); fault != nil {
			return failureOf(errorOf(fault), s.InHand())
		}
	}
}

// eachRow calls handle for each row of the group in hand.
func eachRow[T any](s *session.Session, plan *row.Plan, handle func(T) error) error {
	current := new(T)
	for {
		packed, more, fault := s.NextRow()
		if fault == nil && more {
			fault = plan.Decode(packed, unsafe.Pointer(current), true)
		}
		if fault != nil || !more {
			return errorOf(fault)
		}
		if err := handle(*current); err != nil {
			return err
		}
	}
}

func publicQuery(query contract.Query) Query {
	public := Query{
		QueryID:    query.QueryID,
		RunID:      query.RunID,
		BatchID:    query.BatchID,
		TimeMode:   TimeMode(query.TimeMode),
		OutputMode: OutputMode(query.OutputMode),
		Key:        query.Key,
		Input:      query.Input,
		Parameters: make(map[string]string, len(query.Parameters)),
	}
	if query.InitialState != nil {
		public.InitialState = *query.InitialState
	}
	for _, parameter := range query.Parameters {
		public.Parameters[parameter.Name] = parameter.Value
	}
	return public
}
