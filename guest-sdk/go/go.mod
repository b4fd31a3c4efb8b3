module github.com/tidemill/tidemill/guest-sdk/go

go 1.24
