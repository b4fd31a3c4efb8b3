package tidemill

// The imports and exports of a component. Elsewhere package tidemilltest is the host.
import _ "github.com/tidemill/tidemill/guest-sdk/go/internal/component"
