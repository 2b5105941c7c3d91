// Prints a diagnosis before a memory fault or abort() ends the program.
#pragma once

namespace caffe::tools {

// Installs handlers for SIGBUS, SIGSEGV, SIGFPE and SIGABRT. Before the process ends they name the
// mapped file that shrank while in use (a database that was overwritten), or else the library of
// the fault and the address, and the open databases if LMDB faulted. Exceeding the file size limit
// (SIGXFSZ) becomes a write error.
void ReportFaults();

}  // namespace caffe::tools
