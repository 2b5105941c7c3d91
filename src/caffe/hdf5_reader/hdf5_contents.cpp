#include "caffe/hdf5_reader/hdf5_contents.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Large enough to hide the cost of a message, small compared with typical datasets.
constexpr uint64_t kBytesPerPart = uint64_t{4} << 20;

// Converts a link name such as "12" to a number; empty for "conv12" or an excessively long name.
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

uint64_t BytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

// Extents of a chunk; empty if the dataset is not chunked.
std::vector<hsize_t> ChunkOf(const Hdf5Handle& dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset.get()), H5Pclose);
  std::array<hsize_t, H5S_MAX_RANK> extents;
  if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return {};
  const int axes = H5Pget_chunk(creation.get(), H5S_MAX_RANK, extents.data());
  return {extents.begin(), extents.begin() + std::max(axes, 0)};
}

// The library decompresses whole chunks, and converts at least one element at a time.
uint64_t BytesAtOnce(const Hdf5Handle& dataset) {
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  uint64_t bytes = H5Tget_size(type.get());
  for (const hsize_t extent : ChunkOf(dataset)) bytes *= extent;
  return bytes;
}

// Number of rows to read at a time: whole chunks, so that each is decompressed only once.
uint64_t RowsPerPart(const Hdf5Handle& dataset, uint64_t row_bytes) {
  const std::vector<hsize_t> chunk = ChunkOf(dataset);
  const uint64_t unit = chunk.empty() ? 1 : std::max<uint64_t>(chunk[0], 1);
  return std::max<uint64_t>(kBytesPerPart / std::max<uint64_t>(row_bytes, 1) / unit, 1) * unit;
}

}  // namespace

Hdf5Contents::Hdf5Contents(const std::string& path)
    : path_(path),
      file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose),
      file_bytes_(BytesOf(path)) {
  if (!file_) throw IoError(path + ": not an HDF5 file, or truncated; copy or create it again");
}

// The library reports an error instead of "no" if a group in the path is missing, so each part of
// the path is checked.
bool Hdf5Contents::Contains(const std::string& name) const {
  for (size_t end = name.find('/', 1); end != std::string::npos; end = name.find('/', end + 1)) {
    const std::string prefix = name.substr(0, end);
    if (H5Lexists(file_.get(), prefix.c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return name == "/" || H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT) > 0;
}

bool Hdf5Contents::IsGroup(const std::string& name) const {
  if (!Contains(name)) return false;
  const Hdf5Handle group(H5Gopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  return static_cast<bool>(group);
}

std::vector<std::string> Hdf5Contents::LinksOf(const std::string& name) const {
  if (!IsGroup(name)) throw IoError(Hdf5Place(path_, name) + ": no such group");
  const Hdf5Handle group(H5Gopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  std::vector<std::string> links;
  const auto visit = [](hid_t, const char* link, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->push_back(link);
    return 0;
  };
  if (H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &links) < 0) {
    throw IoError(Hdf5Place(path_, name) + ": cannot list: " + Hdf5Reason());
  }
  std::sort(links.begin(), links.end(), ComesBefore);
  return links;
}

Shape Hdf5Contents::ShapeOf(const std::string& name) const {
  return ShapeOf(OpenDataset(name), name);
}

template <typename T>
void Hdf5Contents::Read(const std::string& name, const std::function<void(uint64_t)>& start,
                        const std::function<void(std::span<const T>)>& take) {
  const Hdf5Handle dataset = OpenDataset(name);
  RequireNumbers(dataset, name);
  const Shape shape = ShapeOf(dataset, name);
  const auto count = static_cast<uint64_t>(shape.count());
  Take(std::max(count * sizeof(T), BytesAtOnce(dataset)), name);
  start(count);
  if (count == 0) return;

  const Hdf5Handle in_file(H5Dget_space(dataset.get()), H5Sclose);
  const bool has_rows = shape.num_axes() > 0;
  const uint64_t rows = has_rows ? static_cast<uint64_t>(shape[0]) : 1, row_count = count / rows;
  const uint64_t step = std::min(rows, RowsPerPart(dataset, row_count * sizeof(T)));
  std::vector<T> values(step * row_count);
  std::vector<hsize_t> offset(shape.num_axes(), 0),
      extents(shape.dims().begin(), shape.dims().end());
  for (uint64_t row = 0; row < rows; row += step) {
    const hsize_t part = std::min(step, rows - row) * row_count;
    if (has_rows) {
      offset[0] = row;
      extents[0] = part / row_count;
      H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, offset.data(), nullptr, extents.data(),
                          nullptr);
    }
    const Hdf5Handle in_memory(H5Screate_simple(1, &part, nullptr), H5Sclose);
    if (H5Dread(dataset.get(), Hdf5TypeOf<T>(), in_memory.get(), in_file.get(), H5P_DEFAULT,
                values.data()) < 0) {
      throw IoError(Hdf5Place(path_, name) + ": cannot read: " + Hdf5Reason());
    }
    take(std::span<const T>(values).first(part));
  }
}

template void Hdf5Contents::Read(const std::string&, const std::function<void(uint64_t)>&,
                                 const std::function<void(std::span<const float>)>&);
template void Hdf5Contents::Read(const std::string&, const std::function<void(uint64_t)>&,
                                 const std::function<void(std::span<const double>)>&);
template void Hdf5Contents::Read(const std::string&, const std::function<void(uint64_t)>&,
                                 const std::function<void(std::span<const int64_t>)>&);

std::string Hdf5Contents::ReadString(const std::string& name) {
  const Hdf5Handle dataset = OpenDataset(name);
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const std::string place = Hdf5Place(path_, name);
  if (H5Tget_class(type.get()) != H5T_STRING) throw IoError(place + ": is not a string");
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count != 1) {
    throw IoError(StrCat(place, ": has ", count, " strings; exactly 1 is expected"));
  }
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0) {
      throw IoError(place + ": cannot read: " + Hdf5Reason());
    }
    const std::string value = text ? text : "";
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &text);
    return value;
  }
  Take(H5Tget_size(type.get()), name);
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) < 0) {
    throw IoError(place + ": cannot read: " + Hdf5Reason());
  }
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

Hdf5Handle Hdf5Contents::OpenDataset(const std::string& name) const {
  if (!Contains(name)) throw IoError(Hdf5Place(path_, name) + ": no such dataset");
  Hdf5Handle dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset) throw IoError(Hdf5Place(path_, name) + ": is a group, not a dataset");
  return dataset;
}

Shape Hdf5Contents::ShapeOf(const Hdf5Handle& dataset, const std::string& name) const {
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const int axes = H5Sget_simple_extent_ndims(space.get());
  if (axes < 0) throw IoError(Hdf5Place(path_, name) + ": has no readable shape");
  std::vector<hsize_t> extents(static_cast<size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  return WithContext(Hdf5Place(path_, name),
                     [&] { return Shape(std::vector<int64_t>(extents.begin(), extents.end())); });
}

void Hdf5Contents::RequireNumbers(const Hdf5Handle& dataset, const std::string& name) const {
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
    throw IoError(Hdf5Place(path_, name) + ": holds neither floating-point numbers nor integers");
  }
}

// Called before allocating `bytes` more. Earlier reads count too: a thousand datasets without
// values, or many names of one dataset, are as harmful as one large dataset.
void Hdf5Contents::Take(uint64_t bytes, const std::string& name) {
  CheckDecodedBytes(taken_ + bytes, file_bytes_, Hdf5Place(path_, name),
                    taken_ > 0 ? ", with the datasets before it," : "");
  taken_ += bytes;
}

}  // namespace caffe
