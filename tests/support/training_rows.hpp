// Rows of three classes for small trainings, in an HDF5 file.
#pragma once

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "caffe/io/hdf5_files.hpp"

namespace caffe::testing {

// Writes `count` rows x of 6 numbers around the centre of their class `label`, and a text file that
// lists the file of rows. Returns the list's name. Deterministic for the same arguments.
inline std::string WriteTrainingRows(const std::string& stem, int count, int first = 0) {
  std::vector<float> x, label;
  for (int i = first; i < first + count; ++i) {
    const int of = i * 7 % 3;
    label.push_back(static_cast<float>(of));
    for (int k = 0; k < 6; ++k) {
      const double noise = std::sin(12.9898 * i + 78.233 * k);
      x.push_back(static_cast<float>((k % 3 == of ? 1.0 : 0.0) + noise));
    }
  }
  Hdf5Writer writer(stem + ".h5");
  writer.WriteFloats("x", Shape{count, 6}, x);
  writer.WriteFloats("label", Shape{count}, label);
  writer.Commit();
  std::ofstream(stem + ".txt") << stem << ".h5\n";
  return stem + ".txt";
}

// A classifier of such rows, as text: training from `train` in batches of `train_batch`, testing
// from `test` in batches of `test_batch`. Batch normalisation has running statistics, dropout
// random numbers.
inline std::string ClassifierOfRows(const std::string& train, const std::string& test,
                                    int test_batch, int train_batch = 4) {
  const auto rows = [](const std::string& phase, const std::string& list, int batch) {
    return "layer { name: 'rows' type: 'HDF5Data' top: 'x' top: 'label' include { phase: " + phase +
           " } hdf5_data_param { source: '" + list + "' batch_size: " + std::to_string(batch) +
           (phase == "TRAIN" ? " shuffle: true" : "") + " } } ";
  };
  return "name: 'rows' " + rows("TRAIN", train, train_batch) + rows("TEST", test, test_batch) + R"(
    layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
      inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
    layer { name: "norm" type: "BatchNorm" bottom: "h" top: "h" }
    layer { name: "relu" type: "ReLU" bottom: "h" top: "h" }
    layer { name: "drop" type: "Dropout" bottom: "h" top: "h" dropout_param { dropout_ratio: 0.2 } }
    layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
    layer { name: "accuracy" type: "Accuracy" bottom: "y" bottom: "label" top: "accuracy"
      include { phase: TEST } } )";
}

}  // namespace caffe::testing
