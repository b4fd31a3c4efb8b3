module example.com/faults

go 1.24

require github.com/tidemill/tidemill/guest-sdk/go v0.0.0

replace github.com/tidemill/tidemill/guest-sdk/go => ../../../../guest-sdk/go
