#ifdef CAFFE_HDF5

#include "caffe/io/hdf5_output.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

namespace caffe {
namespace {

// The library's data for an open file; the library sets the base. `allocated` is the end of its
// data, `written` the end of the file.
struct OpenFile : H5FD_t {
  Hdf5Output* output;
  haddr_t allocated, written;
};

OpenFile& Own(H5FD_t* file) {
  return *static_cast<OpenFile*>(file);
}
const OpenFile& Own(const H5FD_t* file) {
  return *static_cast<const OpenFile*>(file);
}

// The library opens a new file twice, so this neither truncates nor closes it.
H5FD_t* Open(const char*, unsigned, hid_t access, haddr_t) {
  auto* const file = new (std::nothrow) OpenFile{};
  if (file) file->output = *static_cast<Hdf5Output* const*>(H5Pget_driver_info(access));
  return file;
}

herr_t Close(H5FD_t* file) {
  delete &Own(file);
  return 0;
}

int Compare(const H5FD_t* a, const H5FD_t* b) {
  return Own(a).output->descriptor - Own(b).output->descriptor;
}

// The flags of the library's own driver for plain files.
herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t Allocated(const H5FD_t* file, H5FD_mem_t) {
  return Own(file).allocated;
}

herr_t SetAllocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  Own(file).allocated = end;
  return 0;
}

haddr_t Written(const H5FD_t* file, H5FD_mem_t) {
  return Own(file).written;
}

// Unwritten bytes read as 0.
herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t place, size_t size, void* bytes) {
  char* next = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count =
        ::pread(Own(file).output->descriptor, next, size, static_cast<off_t>(place));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    next += count;
    place += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
  }
  std::fill_n(next, size, '\0');
  return 0;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t place, size_t size, const void* bytes) {
  Hdf5Output& output = *Own(file).output;
  Own(file).written = std::max(Own(file).written, place + size);
  const char* next = static_cast<const char*>(bytes);
  while (size > 0 && output.error == 0) {
    const ssize_t count = ::pwrite(output.descriptor, next, size, static_cast<off_t>(place));
    if (count < 0 && errno != EINTR) output.error = errno;
    if (count < 0) continue;
    next += count;
    place += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
  }
  return 0;
}

herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  OpenFile& own = Own(file);
  if (own.written == own.allocated) return 0;
  if (own.output->error == 0 &&
      ::ftruncate(own.output->descriptor, static_cast<off_t>(own.allocated)) != 0) {
    own.output->error = errno;
  }
  own.written = own.allocated;
  return 0;
}

// The owner of the descriptor holds the lock.
herr_t Lock(H5FD_t*, hbool_t) {
  return 0;
}
herr_t Unlock(H5FD_t*) {
  return 0;
}

hid_t Driver() {
  static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 512,  // the first unreserved value
#endif
    .name = "cortado",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(Hdf5Output*),
    .open = Open,
    .close = Close,
    .cmp = Compare,
    .query = Query,
    .get_eoa = Allocated,
    .set_eoa = SetAllocated,
    .get_eof = Written,
    .read = Read,
    .write = Write,
    .truncate = Truncate,
    .lock = Lock,
    .unlock = Unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY
  };
  static const hid_t id = H5FDregister(&driver);
  return id;
}

}  // namespace

void WriteInto(Hdf5Output* output, hid_t access) {
  H5Pset_driver(access, Driver(), &output);
}

}  // namespace caffe

#endif
