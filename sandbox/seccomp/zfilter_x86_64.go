package seccomp

var filterAMD64 = [...]Instruction{}
