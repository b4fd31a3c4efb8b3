module my-processor

go 1.24

require github.com/tidemill/tidemill/guest-sdk/go v0.1.0

// `tidemill build` puts the SDK there.
replace github.com/tidemill/tidemill/guest-sdk/go => ./.tidemill/sdk/go
