// Lets the HDF5 library write to a descriptor, and hides a full disk from it. If the library sees a
// failed write, it cannot close the file any more, keeps half of it in memory, and crashes at the
// end of the process.
#pragma once

#include <hdf5.h>

namespace caffe {

// An open file and the errno of its first failed write, 0 if none failed; nothing is written after
// a failure. Must outlive the library's file.
struct Hdf5Output {
  int descriptor = -1;
  int error = 0;
};

// Makes the library write files opened with the property list `access` to `output`.
void WriteInto(Hdf5Output* output, hid_t access);

}  // namespace caffe
