// Parameters of a net: initial values, and transfers from and to files.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/layer.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// When a blob gets its values: at once, or when somebody needs them. In the second case they may be
// freed and read again; see SyncedTensor::Borrow().
enum class Loading { kNow, kWhenNeeded };

// Takes values from the definition's `blobs` if present, else from the filler, drawn from the
// stream named after layer and index.
void InitializeParam(const Layer& layer, int index, const ParamDeclaration& declaration,
                     uint64_t seed, Loading loading, Blob* blob);
// Throws the errors that InitializeParam() would throw for the filler.
void CheckParamFiller(const Layer& layer, int index, const ParamDeclaration& declaration);

// By parameter name: lr_mult and decay_mult of the first sharer that sets them, for all sharers.
// Throws InvalidArgument if sharers set different values.
using SharedSpecs = std::map<std::string, ParamSpec>;
SharedSpecs MergeSharedSpecs(const NetParameter& param);

Net::LearnableParam DescribeParam(const LayerParameter& layer, int index,
                                  const ParamDeclaration& declaration, const SharedSpecs& shared,
                                  std::shared_ptr<Blob> blob);

using LayerBlobs = std::vector<std::vector<std::shared_ptr<Blob>>>;

// Logs one line per layer with parameters: what was copied, what was not, and why.
void LogTransfers(const std::vector<Net::WeightTransfer>& transfers);

// These three throw InvalidArgument if no layer with parameters is copied. `name`: name of the
// source for that message.
std::vector<Net::WeightTransfer> CopyTrainedLayers(const NetParameter& trained,
                                                   const std::vector<std::string>& layer_names,
                                                   const LayerBlobs& blobs, const char* name);
// Reads a binary .caffemodel, or HDF5 if the name ends in ".h5"; the latter at once. `owned` as in
// WriteTrainedHdf5.
std::vector<Net::WeightTransfer> CopyTrainedFile(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned,
                                                 Loading loading);

// Copies the parameters in the file, which may lack those that are not owned.
std::vector<Net::WeightTransfer> CopyTrainedHdf5(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned);

// Replaces the blobs of `layer` by these values.
void WriteLayerBlobs(const std::vector<std::shared_ptr<Blob>>& blobs, bool write_diff,
                     LayerParameter* layer);
// Writes only blobs that own their memory, as Caffe does.
void WriteTrainedHdf5(const std::vector<std::string>& layer_names, const LayerBlobs& blobs,
                      const std::set<const Blob*>& owned, bool write_diff, Hdf5Writer* writer);

// Copies elements of a serialized blob into `blob`, which must have the same shape (except for
// leading 1s of legacy 4-D shapes). `diff` selects the gradient on both sides.
void ReadBlob(const BlobProto& proto, Blob* blob, bool diff = false);
void WriteBlob(const Blob& blob, bool write_diff, BlobProto* proto);

}  // namespace caffe
