// Golden cases (tests/golden/README.md) as test parameters.
#pragma once

#include <google/protobuf/struct.pb.h>

#include <string>
#include <vector>

#include "tests/support/npz.hpp"

namespace caffe::testing {

// Paths of tests/golden/<group>/*.npz, sorted. Empty if there are no sources: the program may have
// been copied to another machine for other tests (caffe-gpu-check).
std::vector<std::string> GoldenCases(const std::string& group);

// "Convolution-basic" as a test name: letters, digits and underscores.
std::string TestNameOf(const std::string& path);

// The `meta` member. Numbers are doubles, lists list_value().
google::protobuf::Struct MetaOf(const Npz& npz);
double Number(const google::protobuf::Struct& meta, const std::string& key, double fallback = 0);
std::string Text(const google::protobuf::Struct& meta, const std::string& key);
std::vector<std::string> Texts(const google::protobuf::Struct& meta, const std::string& key);

// The keys with a prefix, without that prefix.
std::vector<std::string> KeysAfter(const Npz& npz, const std::string& prefix);

// Splits "conv1.0" into layer and index.
std::pair<std::string, int> LayerAndIndex(const std::string& key);

// Fails the current test, naming `what` and the worst element, if
// |got - want| > atol + rtol * |want|.
void ExpectClose(const std::string& what, const float* got, const std::vector<float>& want,
                 double rtol, double atol);

// The layer types of the case that this build does not have yet; a case with any is skipped.
std::string MissingLayerTypes(const std::string& prototxt);

}  // namespace caffe::testing
