#include "caffe/compat/caffe/util/hdf5.hpp"

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"

namespace caffe::bvlc {
namespace {

// An HDF5 handle, closed by the function for its kind.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const string& what) : id_(id), close_(close) {
    if (id < 0) throw IoError("HDF5: cannot open " + what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void Check(herr_t status, const string& what) {
  if (status < 0) throw IoError("HDF5: cannot " + what);
}

template <typename T>
hid_t TypeOf();
template <>
hid_t TypeOf<float>() {
  return H5T_NATIVE_FLOAT;
}
template <>
hid_t TypeOf<double>() {
  return H5T_NATIVE_DOUBLE;
}

Handle OpenDataset(hid_t location, const string& name) {
  return {H5Dopen2(location, name.c_str(), H5P_DEFAULT), H5Dclose, "dataset '" + name + "'"};
}

vector<int> ExtentsOf(hid_t dataset, const string& name) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "the extents of '" + name + "'");
  vector<hsize_t> extents(H5Sget_simple_extent_ndims(space));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return vector<int>(extents.begin(), extents.end());
}

void CheckMemory(hid_t location, hid_t dataset, size_t value_bytes, const string& name) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "the extents of '" + name + "'");
  const Handle file(H5Iget_file_id(location), H5Fclose, "the file of '" + name + "'");
  hsize_t file_bytes = 0;
  Check(H5Fget_filesize(file, &file_bytes), "find out the file's size");
  const auto count = static_cast<uint64_t>(H5Sget_simple_extent_npoints(space));
  CheckDecodedBytes(count * value_bytes, file_bytes, "HDF5: dataset '", name, "'");
}

void Save(hid_t location, const string& name, const vector<hsize_t>& extents, hid_t type,
          const void* values) {
  const Handle space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                     H5Sclose, "a space for '" + name + "'");
  const Handle dataset(
      H5Dcreate2(location, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "a new dataset '" + name + "'");
  Check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
        "write dataset '" + name + "'");
}

}  // namespace

template <typename Dtype>
void hdf5_load_nd_dataset(hid_t file_id, const char* dataset_name, int min_dim, int max_dim,
                          Blob<Dtype>* blob, bool reshape) {
  const Handle dataset = OpenDataset(file_id, dataset_name);
  const vector<int> extents = ExtentsOf(dataset, dataset_name);
  const int axes = static_cast<int>(extents.size());
  Require(min_dim <= axes && axes <= max_dim, "HDF5: dataset '", dataset_name, "' has ", axes,
          " axes; ", min_dim, " to ", max_dim, " are expected");
  CheckMemory(file_id, dataset, sizeof(Dtype), dataset_name);
  if (reshape || blob->count() == 0) blob->Reshape(extents);
  Require(blob->shape() == extents, "HDF5: dataset '", dataset_name,
          "' has another shape than the blob, ", blob->shape_string());
  Check(H5Dread(dataset, TypeOf<Dtype>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, blob->mutable_cpu_data()),
        StrCat("read dataset '", dataset_name, "'"));
}

template <typename Dtype>
void hdf5_save_nd_dataset(const hid_t file_id, const string& dataset_name, const Blob<Dtype>& blob,
                          bool write_diff) {
  const vector<hsize_t> extents(blob.shape().begin(), blob.shape().end());
  Save(file_id, dataset_name, extents, TypeOf<Dtype>(),
       write_diff ? blob.cpu_diff() : blob.cpu_data());
}

int hdf5_load_int(hid_t loc_id, const string& dataset_name) {
  const Handle dataset = OpenDataset(loc_id, dataset_name);
  int value = 0;
  Check(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value),
        "read dataset '" + dataset_name + "'");
  return value;
}

void hdf5_save_int(hid_t loc_id, const string& dataset_name, int i) {
  Save(loc_id, dataset_name, {1}, H5T_NATIVE_INT, &i);
}

string hdf5_load_string(hid_t loc_id, const string& dataset_name) {
  const Handle dataset = OpenDataset(loc_id, dataset_name);
  const Handle type(H5Dget_type(dataset), H5Tclose, "the type of '" + dataset_name + "'");
  string text(H5Tget_size(type), '\0');
  Check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()),
        "read dataset '" + dataset_name + "'");
  return text.substr(0, text.find('\0'));
}

void hdf5_save_string(hid_t loc_id, const string& dataset_name, const string& s) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "a type for text");
  Check(H5Tset_size(type, s.size() + 1), "make a type for text");
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "a space for text");
  const Handle dataset(
      H5Dcreate2(loc_id, dataset_name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "a new dataset '" + dataset_name + "'");
  Check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, s.c_str()),
        "write dataset '" + dataset_name + "'");
}

int hdf5_get_num_links(hid_t loc_id) {
  H5G_info_t info;
  Check(H5Gget_info(loc_id, &info), "read a group");
  return static_cast<int>(info.nlinks);
}

string hdf5_get_name_by_idx(hid_t loc_id, int idx) {
  const auto read = [&](char* name, size_t size) {
    return H5Lget_name_by_idx(loc_id, ".", H5_INDEX_NAME, H5_ITER_NATIVE, static_cast<hsize_t>(idx),
                              name, size, H5P_DEFAULT);
  };
  const ssize_t length = read(nullptr, 0);
  if (length < 0) throw IoError(StrCat("HDF5: the group has no link ", idx));
  string name(static_cast<size_t>(length) + 1, '\0');
  read(name.data(), name.size());
  name.pop_back();
  return name;
}

template void hdf5_load_nd_dataset<float>(hid_t, const char*, int, int, Blob<float>*, bool);
template void hdf5_load_nd_dataset<double>(hid_t, const char*, int, int, Blob<double>*, bool);
template void hdf5_save_nd_dataset<float>(const hid_t, const string&, const Blob<float>&, bool);
template void hdf5_save_nd_dataset<double>(const hid_t, const string&, const Blob<double>&, bool);

}  // namespace caffe::bvlc
