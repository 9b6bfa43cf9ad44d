module leat

go 1.19
