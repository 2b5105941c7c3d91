// Inputs in the place of data layers, for nets that are planned or timed without their data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// By the blob's name: its dimensions.
using BlobDims = std::map<std::string, std::vector<int64_t>>;

// "data=2,3,227,227" as an entry; further ones after spaces. Throws InvalidArgument for another
// form, and for dimensions that are not positive.
CAFFE_EXPORT BlobDims ParseBlobDims(const std::string& text);

// Each layer that reads nothing and writes one of these blobs becomes an Input of the same name and
// rules. Throws InvalidArgument where no such layer writes one of the blobs, or where it writes a
// blob that has no dimensions here.
CAFFE_EXPORT void ReplaceByInputs(const BlobDims& dims, NetParameter* net);

// What a layer that reads files would write: batch_size images of the size to which its options
// crop or resize them, and a label each. Empty where the options do not say the size.
CAFFE_EXPORT BlobDims DimsByOptions(const LayerParameter& layer);

// The database or list that a layer reads; empty where it reads none.
CAFFE_EXPORT std::string SourceOf(const LayerParameter& layer);

// The same replacement for each layer whose source (a database or list) is not there, by its
// options. Returns what was assumed, a sentence per layer. Throws InvalidArgument, with what to
// give, where the options do not say the size.
CAFFE_EXPORT std::vector<std::string> ReplaceMissingData(NetParameter* net);

// Bytes of the batches that layers of `with_data` would prepare ahead which are inputs in
// `with_inputs`, the same net after a replacement.
CAFFE_EXPORT int64_t ReadAheadBytes(const NetParameter& with_data, const NetParameter& with_inputs);

}  // namespace caffe
