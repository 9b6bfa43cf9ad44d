module example

go 1.19

require leat v0.0.0

replace leat => ../../../clients/go
