module krafla/xtask/schema

go 1.26
