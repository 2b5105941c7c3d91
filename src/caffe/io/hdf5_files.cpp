#include "caffe/io/hdf5_files.hpp"

#include "caffe/error.hpp"

#ifdef CAFFE_HDF5

#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "caffe/decode_limit.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/hdf5_output.hpp"

namespace caffe {
namespace {

std::recursive_mutex& LibraryMutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

// Takes the library's turn and keeps it from printing its own error stack.
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

// Owns an identifier of the library together with the function that closes its kind.
class Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&&) = delete;

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

  bool Close() { return closer_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_;
  Closer closer_;
};

// What a callback that returns herr_t may do. An exception must not pass through the library, which
// would keep what it has open; so it stays in `error`, and the library's own call fails.
template <typename Fn>
herr_t Guarded(std::exception_ptr* error, const Fn& fn) {
  try {
    fn();
    return 0;
  } catch (...) {
    *error = std::current_exception();
    return -1;
  }
}

// The innermost reason that the library gives for the last failure: "no space left on device".
std::string LibraryReason() {
  struct Visit {
    std::string reason;
    std::exception_ptr error;
  } visit;
  // Walking upward starts at the innermost call.
  const auto see = [](unsigned depth, const H5E_error2_t* error, void* data) {
    auto* const seen = static_cast<Visit*>(data);
    return Guarded(&seen->error, [&] {
      if (depth == 0 && error->desc) seen->reason = error->desc;
    });
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, see, &visit);
  if (visit.error) std::rethrow_exception(visit.error);
  return visit.reason.empty() ? "unknown HDF5 error" : visit.reason;
}

std::string Place(const std::string& path, const std::string& name) {
  return StrCat(path, ": '", name, "'");
}

template <typename T>
hid_t MemoryType();
template <>
hid_t MemoryType<float>() {
  return H5T_NATIVE_FLOAT;
}
template <>
hid_t MemoryType<double>() {
  return H5T_NATIVE_DOUBLE;
}
template <>
hid_t MemoryType<int64_t>() {
  return H5T_NATIVE_INT64;
}

// Number of a link name such as "12"; none for "conv12" or an absurdly long one.
std::optional<uint64_t> NumberOf(const std::string& name) {
  const bool is_number =
      !name.empty() && name.size() <= 18 &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return '0' <= c && c <= '9'; });
  if (!is_number) return std::nullopt;
  return std::stoull(name);
}

bool ComesBefore(const std::string& a, const std::string& b) {
  const auto number_a = NumberOf(a);
  const auto number_b = NumberOf(b);
  if (number_a && number_b && *number_a != *number_b) return *number_a < *number_b;
  if (number_a.has_value() != number_b.has_value()) return number_a.has_value();
  return a < b;
}

}  // namespace

struct Hdf5Reader::Impl {
  explicit Impl(const std::string& file_path)
      : path(file_path), file(H5Fopen(file_path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {
    std::error_code ignored;
    file_bytes = std::filesystem::file_size(file_path, ignored);
  }

  Handle OpenDataset(const std::string& name) const {
    if (!Exists(name)) {
      throw IoError(Place(path, name) + ": no such dataset");
    }
    Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset) throw IoError(Place(path, name) + ": is a group, not a dataset");
    return dataset;
  }

  // The library reports an error, not "no", when a group on the way is missing; so each step of
  // the path is asked for.
  bool Exists(const std::string& name) const {
    for (size_t end = name.find('/', 1); end != std::string::npos; end = name.find('/', end + 1)) {
      const std::string prefix = name.substr(0, end);
      if (H5Lexists(file.get(), prefix.c_str(), H5P_DEFAULT) <= 0) return false;
    }
    return name == "/" || H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) > 0;
  }

  std::vector<int64_t> Extents(const Handle& dataset, const std::string& name) const {
    const Handle space(H5Dget_space(dataset.get()), H5Sclose);
    const int axes = H5Sget_simple_extent_ndims(space.get());
    if (axes < 0) throw IoError(Place(path, name) + ": has no readable shape");
    std::vector<hsize_t> extents(static_cast<size_t>(axes));
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    return std::vector<int64_t>(extents.begin(), extents.end());
  }

  Shape ShapeOf(const Handle& dataset, const std::string& name) const {
    const std::vector<int64_t> extents = Extents(dataset, name);
    return WithContext(Place(path, name), [&] { return Shape(extents); });
  }

  void RequireNumbers(const Handle& dataset, const std::string& name) const {
    const Handle type(H5Dget_type(dataset.get()), H5Tclose);
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
      throw IoError(Place(path, name) + ": holds neither floating-point numbers nor integers");
    }
  }

  // Before memory is taken for `bytes` more. What was read before counts too: a thousand datasets
  // without values, or names of one dataset, are no better than one that is as large.
  void Take(uint64_t bytes, const std::string& name) {
    CheckDecodedBytes(taken + bytes, file_bytes, Place(path, name),
                      taken > 0 ? ", with the datasets before it," : "");
    taken += bytes;
  }

  // The library decompresses a chunk as a whole, and converts at least one element at a time.
  uint64_t BytesAtOnce(const Handle& dataset) const {
    const Handle type(H5Dget_type(dataset.get()), H5Tclose);
    const Handle creation(H5Dget_create_plist(dataset.get()), H5Pclose);
    uint64_t bytes = H5Tget_size(type.get());
    std::array<hsize_t, H5S_MAX_RANK> extents;
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return bytes;
    const int axes = H5Pget_chunk(creation.get(), H5S_MAX_RANK, extents.data());
    for (int i = 0; i < axes; ++i) bytes *= extents[static_cast<size_t>(i)];
    return bytes;
  }

  template <typename T>
  std::vector<T> Read(const std::string& name) {
    const LibraryLock lock;
    const Handle dataset = OpenDataset(name);
    RequireNumbers(dataset, name);
    const auto count = static_cast<uint64_t>(ShapeOf(dataset, name).count());
    Take(std::max(count * sizeof(T), BytesAtOnce(dataset)), name);
    std::vector<T> values(count);
    if (!values.empty() &&
        H5Dread(dataset.get(), MemoryType<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
      throw IoError(Place(path, name) + ": cannot read: " + LibraryReason());
    }
    return values;
  }

  std::string path;
  Handle file;
  uint64_t file_bytes = 0;
  uint64_t taken = 0;  // by what was read so far
};

Hdf5Reader::Hdf5Reader(const std::string& path) {
  const LibraryLock lock;
  // The library's own text for a missing file does not say that it is missing.
  if (::access(path.c_str(), R_OK) != 0) {
    const int error = errno;
    throw IoError(StrCat(path, ": cannot open: ", ErrnoText(error)));
  }
  impl_ = std::make_unique<Impl>(path);
  if (!impl_->file) {
    impl_.reset();
    throw IoError(path + ": not an HDF5 file, or truncated; copy or create it again");
  }
}

Hdf5Reader::~Hdf5Reader() {
  const LibraryLock lock;
  impl_.reset();
}

bool Hdf5Reader::Contains(const std::string& name) const {
  const LibraryLock lock;
  return impl_->Exists(name);
}

bool Hdf5Reader::IsGroup(const std::string& name) const {
  const LibraryLock lock;
  if (!impl_->Exists(name)) return false;
  const Handle group(H5Gopen2(impl_->file.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  return static_cast<bool>(group);
}

std::vector<std::string> Hdf5Reader::LinksOf(const std::string& name) const {
  const LibraryLock lock;
  if (!IsGroup(name)) throw IoError(Place(impl_->path, name) + ": no such group");
  const Handle group(H5Gopen2(impl_->file.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  struct Visit {
    std::vector<std::string> links;
    std::exception_ptr error;
  } visit;
  const auto see = [](hid_t, const char* link, const H5L_info_t*, void* data) {
    auto* const seen = static_cast<Visit*>(data);
    return Guarded(&seen->error, [&] { seen->links.emplace_back(link); });
  };
  const herr_t status =
      H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, see, &visit);
  if (visit.error) std::rethrow_exception(visit.error);
  if (status < 0) throw IoError(Place(impl_->path, name) + ": cannot list: " + LibraryReason());
  std::sort(visit.links.begin(), visit.links.end(), ComesBefore);
  return visit.links;
}

Shape Hdf5Reader::ShapeOf(const std::string& dataset) const {
  const LibraryLock lock;
  return impl_->ShapeOf(impl_->OpenDataset(dataset), dataset);
}

std::vector<float> Hdf5Reader::ReadFloats(const std::string& dataset) const {
  return impl_->Read<float>(dataset);
}

std::vector<double> Hdf5Reader::ReadDoubles(const std::string& dataset) const {
  return impl_->Read<double>(dataset);
}

int64_t Hdf5Reader::ReadInteger(const std::string& dataset) const {
  const std::vector<int64_t> values = impl_->Read<int64_t>(dataset);
  if (values.size() != 1) {
    throw IoError(StrCat(Place(impl_->path, dataset), ": has ", values.size(),
                         " values; exactly 1 is expected"));
  }
  return values[0];
}

std::string Hdf5Reader::ReadString(const std::string& name) const {
  const LibraryLock lock;
  const Handle dataset = impl_->OpenDataset(name);
  const Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const std::string place = Place(impl_->path, name);
  if (H5Tget_class(type.get()) != H5T_STRING) throw IoError(place + ": is not a string");
  const Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count != 1) {
    throw IoError(StrCat(place, ": has ", count, " strings; exactly 1 is expected"));
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0) {
      throw IoError(place + ": cannot read: " + LibraryReason());
    }
    const std::string value = text ? text : "";
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &text);
    return value;
  }
  impl_->Take(H5Tget_size(type.get()), name);
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) < 0) {
    throw IoError(place + ": cannot read: " + LibraryReason());
  }
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

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

  // Of the call that has just failed.
  std::string Reason() const {
    return output.error != 0 ? WriteErrorText(output.error) : LibraryReason();
  }

  void Write(const std::string& name, const Handle& space, hid_t file_type, hid_t memory_type,
             const void* values) {
    if (!*file) throw IoError(Place(path, name) + ": cannot write: the file is already committed");
    const bool has_values = H5Sget_simple_extent_npoints(space.get()) > 0;
    Handle dataset(H5Dcreate2(file->get(), name.c_str(), file_type, space.get(),
                              create_groups.get(), without_times.get(), H5P_DEFAULT),
                   H5Dclose);
    const bool written = dataset && (!has_values || H5Dwrite(dataset.get(), memory_type, H5S_ALL,
                                                             H5S_ALL, H5P_DEFAULT, values) >= 0);
    if (!written || !dataset.Close() || output.error != 0) {
      throw IoError(Place(path, name) + ": cannot write: " + Reason());
    }
  }

  template <typename T>
  void WriteArray(const std::string& name, const Shape& shape, std::span<const T> values,
                  hid_t file_type) {
    Require(static_cast<int64_t>(values.size()) == shape.count(), Place(path, name), ": got ",
            values.size(), " values for shape ", shape, ", which needs ", shape.count());
    const LibraryLock lock;
    const std::vector<hsize_t> extents(shape.dims().begin(), shape.dims().end());
    const Handle space(H5Screate_simple(shape.num_axes(), extents.data(), nullptr), H5Sclose);
    Write(name, space, file_type, MemoryType<T>(), values.data());
  }

  std::string path;
  AtomicFile target;
  Hdf5Output output;
  Handle create_groups;
  Handle without_times;
  Handle access;
  // Opened last: every later call of the library would wipe out the reason of a failure.
  std::optional<Handle> file;
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
  const Handle existing(H5Gopen2(impl_->file->get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  if (existing) return;
  const Handle group(H5Gcreate2(impl_->file->get(), name.c_str(), impl_->create_groups.get(),
                                H5P_DEFAULT, H5P_DEFAULT),
                     H5Gclose);
  if (!group) throw IoError(Place(impl_->path, name) + ": cannot create: " + LibraryReason());
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
  // 32 bits where they do: older programs read their counters as such.
  const bool is_short =
      std::numeric_limits<int32_t>::min() <= value && value <= std::numeric_limits<int32_t>::max();
  impl_->WriteArray(dataset, Shape{1}, std::span<const int64_t>(&value, 1),
                    is_short ? H5T_STD_I32LE : H5T_STD_I64LE);
}

void Hdf5Writer::WriteString(const std::string& dataset, const std::string& value) {
  const LibraryLock lock;
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
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

void Hdf5Writer::Commit() {
  MakeDurable();
  impl_->target.Commit();
}

}  // namespace caffe

#else  // A build without HDF5: the same classes, which refuse to open anything.

namespace caffe {
namespace {

[[noreturn]] void Refuse(const std::string& path) {
  throw Unsupported(path + ": this build has no HDF5; configure with -DCAFFE_HDF5=ON");
}

}  // namespace

struct Hdf5Reader::Impl {};
struct Hdf5Writer::Impl {};

Hdf5Reader::Hdf5Reader(const std::string& path) {
  Refuse(path);
}
Hdf5Reader::~Hdf5Reader() = default;
bool Hdf5Reader::Contains(const std::string& name) const {
  Refuse(name);
}
bool Hdf5Reader::IsGroup(const std::string& name) const {
  Refuse(name);
}
std::vector<std::string> Hdf5Reader::LinksOf(const std::string& group) const {
  Refuse(group);
}
Shape Hdf5Reader::ShapeOf(const std::string& dataset) const {
  Refuse(dataset);
}
std::vector<float> Hdf5Reader::ReadFloats(const std::string& dataset) const {
  Refuse(dataset);
}
std::vector<double> Hdf5Reader::ReadDoubles(const std::string& dataset) const {
  Refuse(dataset);
}
int64_t Hdf5Reader::ReadInteger(const std::string& dataset) const {
  Refuse(dataset);
}
std::string Hdf5Reader::ReadString(const std::string& dataset) const {
  Refuse(dataset);
}

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
void Hdf5Writer::Commit() {
  Refuse("Commit");
}

}  // namespace caffe

#endif
