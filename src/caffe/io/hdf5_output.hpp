// Where the HDF5 library writes a file: into a descriptor, and without hearing of a full disk. A
// library that hears of a failed write cannot close the file any more, keeps half of it in memory,
// and crashes when the process ends.
#pragma once

#include <hdf5.h>

namespace caffe {

// An open file and the errno of the first write to it that failed, 0 if none did; nothing is
// written after that. Has to outlive the library's file.
struct Hdf5Output {
  int descriptor = -1;
  int error = 0;
};

// Files opened with the property list `access` are written into `output`.
void WriteInto(Hdf5Output* output, hid_t access);

}  // namespace caffe
