// Parameters of a net: first values, and copies from and to files.
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

// Values from the definition's `blobs` where it has them, else from the filler, drawn from the
// stream named after layer and index.
void InitializeParam(const Layer& layer, int index, const ParamDeclaration& declaration,
                     uint64_t seed, Blob* blob);
// Throws what that would throw for the filler.
void CheckParamFiller(const Layer& layer, int index, const ParamDeclaration& declaration);

// By the parameter's name: lr_mult and decay_mult of the first sharer that gives them, which count
// for all. Throws InvalidArgument when sharers give different ones.
using SharedSpecs = std::map<std::string, ParamSpec>;
SharedSpecs MergeSharedSpecs(const NetParameter& param);

Net::LearnableParam DescribeParam(const LayerParameter& layer, int index,
                                  const ParamDeclaration& declaration, const SharedSpecs& shared,
                                  std::shared_ptr<Blob> blob);

using LayerBlobs = std::vector<std::vector<std::shared_ptr<Blob>>>;

// One line per layer with parameters: what was copied, what was not, and why.
void LogTransfers(const std::vector<Net::WeightTransfer>& transfers);

// These three throw InvalidArgument where no layer with parameters takes any. `name` is what the
// text of that error calls the source.
std::vector<Net::WeightTransfer> CopyTrainedLayers(const NetParameter& trained,
                                                   const std::vector<std::string>& layer_names,
                                                   const LayerBlobs& blobs, const char* name);
// Binary .caffemodel, or HDF5 by its ".h5" ending. `owned` as in WriteTrainedHdf5.
std::vector<Net::WeightTransfer> CopyTrainedFile(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned);

// What the file has; it may lack what is not owned.
std::vector<Net::WeightTransfer> CopyTrainedHdf5(const std::string& file,
                                                 const std::vector<std::string>& layer_names,
                                                 const LayerBlobs& blobs,
                                                 const std::set<const Blob*>& owned);

// Replaces `layer`'s blobs by these values.
void WriteLayerBlobs(const std::vector<std::shared_ptr<Blob>>& blobs, bool write_diff,
                     LayerParameter* layer);
// Writes only blobs that own their memory, as Caffe does.
void WriteTrainedHdf5(const std::vector<std::string>& layer_names, const LayerBlobs& blobs,
                      const std::set<const Blob*>& owned, bool write_diff, Hdf5Writer* writer);

// Elements of a serialised blob into `blob`, whose shape they must have (leading 1s of legacy 4-D
// shapes aside). `diff` picks the gradient on both sides.
void ReadBlob(const BlobProto& proto, Blob* blob, bool diff = false);
void WriteBlob(const Blob& blob, bool write_diff, BlobProto* proto);

}  // namespace caffe
