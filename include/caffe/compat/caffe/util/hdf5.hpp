// Datasets of HDF5 files that the caller opened with the HDF5 library.
#pragma once

#include <hdf5.h>

#include <string>

#include "../blob.hpp"

CAFFE_BVLC_BEGIN
// All throw caffe::Error naming the dataset. Loading reshapes the blob if `reshape` is set or the
// blob has no elements, and checks its shape otherwise.
template <typename Dtype>
void hdf5_load_nd_dataset(hid_t file_id, const char* dataset_name, int min_dim, int max_dim,
                          Blob<Dtype>* blob, bool reshape = false);
template <typename Dtype>
void hdf5_save_nd_dataset(const hid_t file_id, const string& dataset_name, const Blob<Dtype>& blob,
                          bool write_diff = false);

int hdf5_load_int(hid_t loc_id, const string& dataset_name);
void hdf5_save_int(hid_t loc_id, const string& dataset_name, int i);
string hdf5_load_string(hid_t loc_id, const string& dataset_name);
void hdf5_save_string(hid_t loc_id, const string& dataset_name, const string& s);

int hdf5_get_num_links(hid_t loc_id);
string hdf5_get_name_by_idx(hid_t loc_id, int idx);

CAFFE_BVLC_END
