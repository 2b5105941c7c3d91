// Runs a net on given numbers and writes the results, as floats in files of a folder.
//
//   golden_net FOLDER PHASE      reads net.prototxt, in.BLOB, param.LAYER.I, outdiff.BLOB
#include <caffe/caffe.hpp>
#include <cstdlib>
#include <string>

using namespace caffe;  // NOLINT(build/namespaces)

namespace {

string folder;

// Returns whether there is such a file.
bool Read(const string& name, int count, float* values) {
  std::ifstream file((folder + "/" + name).c_str(), std::ios::binary);
  if (!file) return false;
  CHECK(file.read(reinterpret_cast<char*>(values), count * sizeof(float))) << name;
  return true;
}

void Write(const string& name, int count, const float* values) {
  std::ofstream file((folder + "/" + name).c_str(), std::ios::binary);
  file.write(reinterpret_cast<const char*>(values), count * sizeof(float));
}

}  // namespace

int main(int argc, char** argv) {
  GlobalInit(&argc, &argv);
  CHECK_EQ(argc, 3);
  folder = argv[1];
  NetParameter param;
  ReadNetParamsFromTextFileOrDie(folder + "/net.prototxt", &param);
  param.mutable_state()->set_phase(string(argv[2]) == "TRAIN" ? TRAIN : TEST);
  param.set_force_backward(true);
  Net<float> net(param);
  for (size_t i = 0; i < net.layers().size(); ++i) {
    for (size_t k = 0; k < net.layers()[i]->blobs().size(); ++k) {
      Blob<float>& blob = *net.layers()[i]->blobs()[k];
      Read("param." + net.layer_names()[i] + "." + format_int(k), blob.count(),
           blob.mutable_cpu_data());
    }
  }
  for (int i = 0; i < net.num_inputs(); ++i) {
    Blob<float>& blob = *net.input_blobs()[i];
    Read("in." + net.blob_names()[net.input_blob_indices()[i]], blob.count(),
         blob.mutable_cpu_data());
  }
  net.ClearParamDiffs();
  net.Forward();
  for (int i = 0; i < net.num_outputs(); ++i) {
    Blob<float>& blob = *net.output_blobs()[i];
    const string& name = net.blob_names()[net.output_blob_indices()[i]];
    Write("out." + name, blob.count(), blob.cpu_data());
    Read("outdiff." + name, blob.count(), blob.mutable_cpu_diff());
  }
  net.Backward();
  for (int i = 0; i < net.num_inputs(); ++i) {
    const Blob<float>& blob = *net.input_blobs()[i];
    Write("indiff." + net.blob_names()[net.input_blob_indices()[i]], blob.count(), blob.cpu_diff());
  }
  for (size_t i = 0; i < net.layers().size(); ++i) {
    for (size_t k = 0; k < net.layers()[i]->blobs().size(); ++k) {
      const Blob<float>& blob = *net.layers()[i]->blobs()[k];
      Write("paramdiff." + net.layer_names()[i] + "." + format_int(k), blob.count(),
            blob.cpu_diff());
    }
  }
  return 0;
}
