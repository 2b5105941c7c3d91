// Replaces data layers by inputs, for nets that are planned or timed without their data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Dimensions by blob name.
using BlobDims = std::map<std::string, std::vector<int64_t>>;

// Parses "data=2,3,227,227"; several entries are separated by spaces. Throws InvalidArgument for
// any other form, and for dimensions that are not positive.
CAFFE_EXPORT BlobDims ParseBlobDims(const std::string& text);

// Replaces each layer without bottoms that writes one of these blobs by an Input of the same name
// and rules. Throws InvalidArgument if no such layer writes one of the blobs, or if it writes a
// blob without dimensions here.
CAFFE_EXPORT void ReplaceByInputs(const BlobDims& dims, NetParameter* net);

// Blobs that a layer with file options would write: batch_size images of the size to which its
// options crop or resize them, and a label each. Empty if the options do not determine the size.
CAFFE_EXPORT BlobDims DimsByOptions(const LayerParameter& layer);

// The database or list that a layer reads; empty if it reads none.
CAFFE_EXPORT std::string SourceOf(const LayerParameter& layer);

// Replaces each layer whose source (a database or list) does not exist in the same way, according
// to its options. Returns the assumptions, a sentence per layer. Throws InvalidArgument with advice
// if the options do not determine the size.
CAFFE_EXPORT std::vector<std::string> ReplaceMissingData(NetParameter* net);

// Bytes of the batches that the layers of `with_data` would prefetch if they are inputs in
// `with_inputs`, the same net after a replacement.
CAFFE_EXPORT int64_t ReadAheadBytes(const NetParameter& with_data, const NetParameter& with_inputs);

}  // namespace caffe
