// What the program says before a fault of memory ends it.
#pragma once

namespace caffe::tools {

// Afterwards SIGBUS, SIGSEGV, SIGFPE and SIGABRT say what was hit before they end the process: a
// mapped file that became shorter under way (a database that was copied over) by its name, else the
// library in which the fault was and its address; the open databases, if that was LMDB. A file size
// limit (SIGXFSZ) becomes an error of the write.
void ReportFaults();

}  // namespace caffe::tools
