#include "caffe/error.hpp"
#include "caffe/io/hdf5_files.hpp"

#ifdef CAFFE_HDF5

#include <hdf5.h>

#include <limits>
#include <mutex>
#include <optional>

#include "caffe/io/atomic_file.hpp"
#include "caffe/io/hdf5_handle.hpp"
#include "caffe/io/hdf5_output.hpp"

namespace caffe {
namespace {

std::recursive_mutex& LibraryMutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

// Locks the library and keeps it from printing its own error stack.
class LibraryLock {
 public:
  LibraryLock() : lock_(LibraryMutex()) {
    H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~LibraryLock() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

}  // namespace

struct Hdf5Writer::Impl {
  explicit Impl(const std::string& file_path)
      : path(file_path),
        target(file_path),
        output{.descriptor = target.descriptor()},
        create_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose),
        without_times(H5Pcreate(H5P_DATASET_CREATE), H5Pclose),
        access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose) {
    H5Pset_create_intermediate_group(create_groups.get(), 1);
    H5Pset_obj_track_times(without_times.get(), false);
    WriteInto(&output, access.get());
    file.emplace(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  }

  // The reason for the failure of the last call.
  std::string Reason() const {
    return output.error != 0 ? WriteErrorText(output.error) : Hdf5Reason();
  }

  void Write(const std::string& name, const Hdf5Handle& space, hid_t file_type, hid_t memory_type,
             const void* values) {
    if (!*file)
      throw IoError(Hdf5Place(path, name) + ": cannot write: the file is already committed");
    const bool has_values = H5Sget_simple_extent_npoints(space.get()) > 0;
    Hdf5Handle dataset(H5Dcreate2(file->get(), name.c_str(), file_type, space.get(),
                                  create_groups.get(), without_times.get(), H5P_DEFAULT),
                       H5Dclose);
    const bool written = dataset && (!has_values || H5Dwrite(dataset.get(), memory_type, H5S_ALL,
                                                             H5S_ALL, H5P_DEFAULT, values) >= 0);
    if (!written || !dataset.Close() || output.error != 0) {
      throw IoError(Hdf5Place(path, name) + ": cannot write: " + Reason());
    }
  }

  template <typename T>
  void WriteArray(const std::string& name, const Shape& shape, std::span<const T> values,
                  hid_t file_type) {
    Require(static_cast<int64_t>(values.size()) == shape.count(), Hdf5Place(path, name), ": got ",
            values.size(), " values for shape ", shape, ", which needs ", shape.count());
    const LibraryLock lock;
    const std::vector<hsize_t> extents(shape.dims().begin(), shape.dims().end());
    const Hdf5Handle space(H5Screate_simple(shape.num_axes(), extents.data(), nullptr), H5Sclose);
    Write(name, space, file_type, Hdf5TypeOf<T>(), values.data());
  }

  std::string path;
  AtomicFile target;
  Hdf5Output output;
  Hdf5Handle create_groups;
  Hdf5Handle without_times;
  Hdf5Handle access;
  // Opened last, because every later call of the library would erase the reason of a failure.
  std::optional<Hdf5Handle> file;
};

Hdf5Writer::Hdf5Writer(const std::string& path) {
  const LibraryLock lock;
  impl_ = std::make_unique<Impl>(path);
  if (!*impl_->file) {
    const std::string reason = impl_->Reason();
    impl_.reset();
    throw IoError(StrCat(path, ": cannot create: ", reason));
  }
}

Hdf5Writer::~Hdf5Writer() {
  const LibraryLock lock;
  impl_.reset();
}

void Hdf5Writer::CreateGroup(const std::string& name) {
  const LibraryLock lock;
  const Hdf5Handle existing(H5Gopen2(impl_->file->get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  if (existing) return;
  const Hdf5Handle group(H5Gcreate2(impl_->file->get(), name.c_str(), impl_->create_groups.get(),
                                    H5P_DEFAULT, H5P_DEFAULT),
                         H5Gclose);
  if (!group) throw IoError(Hdf5Place(impl_->path, name) + ": cannot create: " + Hdf5Reason());
}

void Hdf5Writer::WriteFloats(const std::string& dataset, const Shape& shape,
                             std::span<const float> values) {
  impl_->WriteArray(dataset, shape, values, H5T_IEEE_F32LE);
}

void Hdf5Writer::WriteDoubles(const std::string& dataset, const Shape& shape,
                              std::span<const double> values) {
  impl_->WriteArray(dataset, shape, values, H5T_IEEE_F64LE);
}

void Hdf5Writer::WriteInteger(const std::string& dataset, int64_t value) {
  // Uses 32 bits if possible, because older programs read their counters as such.
  const bool is_short =
      std::numeric_limits<int32_t>::min() <= value && value <= std::numeric_limits<int32_t>::max();
  impl_->WriteArray(dataset, Shape{1}, std::span<const int64_t>(&value, 1),
                    is_short ? H5T_STD_I32LE : H5T_STD_I64LE);
}

void Hdf5Writer::WriteString(const std::string& dataset, const std::string& value) {
  const LibraryLock lock;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  impl_->Write(dataset, space, type.get(), type.get(), value.c_str());
}

void Hdf5Writer::MakeDurable() {
  const LibraryLock lock;
  const bool is_closed = !*impl_->file || impl_->file->Close();
  if (!is_closed || impl_->output.error != 0) {
    throw IoError(impl_->path + ": cannot write: " + impl_->Reason());
  }
  impl_->target.MakeDurable();
}

ContentMark Hdf5Writer::mark() const {
  return MarkOf(impl_->target.descriptor(), impl_->path);
}

void Hdf5Writer::Commit() {
  MakeDurable();
  impl_->target.Commit();
}

}  // namespace caffe

#else  // A build without HDF5: the same class, which refuses to create anything.

namespace caffe {
namespace {

[[noreturn]] void Refuse(const std::string& path) {
  throw Unsupported(path + ": this build has no HDF5; configure with -DCAFFE_HDF5=ON");
}

}  // namespace

struct Hdf5Writer::Impl {};

Hdf5Writer::Hdf5Writer(const std::string& path) {
  Refuse(path);
}
Hdf5Writer::~Hdf5Writer() = default;
void Hdf5Writer::CreateGroup(const std::string& name) {
  Refuse(name);
}
void Hdf5Writer::WriteFloats(const std::string& dataset, const Shape&, std::span<const float>) {
  Refuse(dataset);
}
void Hdf5Writer::WriteDoubles(const std::string& dataset, const Shape&, std::span<const double>) {
  Refuse(dataset);
}
void Hdf5Writer::WriteInteger(const std::string& dataset, int64_t) {
  Refuse(dataset);
}
void Hdf5Writer::WriteString(const std::string& dataset, const std::string&) {
  Refuse(dataset);
}
void Hdf5Writer::MakeDurable() {
  Refuse("MakeDurable");
}
ContentMark Hdf5Writer::mark() const {
  Refuse("mark");
}
void Hdf5Writer::Commit() {
  Refuse("Commit");
}

}  // namespace caffe

#endif
