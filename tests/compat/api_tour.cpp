// Makes each call of Caffe's C++ API once and checks the result. Written like a program for Caffe;
// tests/scripts/test_old_cpp.py compiles it with the installed headers.
//
//   api_tour FOLDER      a folder that the program may write to
#include <caffe/util/signal_handler.h>

#include <boost/shared_ptr.hpp>
#include <caffe/caffe.hpp>
#include <caffe/data_transformer.hpp>
#include <caffe/internal_thread.hpp>
#include <caffe/layers/memory_data_layer.hpp>
#include <caffe/sgd_solvers.hpp>
#include <caffe/util/blocking_queue.hpp>
#include <caffe/util/db.hpp>
#include <caffe/util/hdf5.hpp>
#include <caffe/util/im2col.hpp>
#include <caffe/util/math_functions.hpp>
#include <caffe/util/rng.hpp>
#include <cmath>
#include <csignal>
#include <string>
#include <vector>

using namespace caffe;  // NOLINT(build/namespaces)
using std::string;
using std::vector;

namespace {

string folder;

// Returns true if the call throws the library's exception.
template <typename Function>
bool Throws(Function function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    CHECK_GT(string(error.what()).size(), 10u);
    return true;
  }
  return false;
}

NetParameter NetFromText(const string& text) {
  const string file = folder + "/net.prototxt";
  std::ofstream(file.c_str()) << text;
  NetParameter param;
  ReadNetParamsFromTextFileOrDie(file, &param);
  return param;
}

const char* const kNet =
    "name: 'tour'\n"
    "layer { name: 'in' type: 'Input' top: 'data' top: 'label'\n"
    "  input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }\n"
    "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc'\n"
    "  param { name: 'w' lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }\n"
    "  inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'relu' type: 'ReLU' bottom: 'fc' top: 'fc' }\n"
    "layer { name: 'fc2' type: 'InnerProduct' bottom: 'fc' top: 'fc2' param { name: 'w' }\n"
    "  inner_product_param { num_output: 3 bias_term: false } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc2' bottom: 'label' top: 'loss'\n"
    "  include { phase: TRAIN } }\n"
    "layer { name: 'prob' type: 'Softmax' bottom: 'fc2' top: 'prob' include { phase: TEST } }\n"
    "layer { name: 'quiet' type: 'Silence' bottom: 'label' include { phase: TEST } }\n";

void TourBlob() {
  Blob<float> blob;
  CHECK_EQ(blob.count(), 0);
  blob.Reshape(1, 3, 4, 5);
  CHECK_EQ(blob.shape_string(), "1 3 4 5 (60)");
  CHECK_EQ(blob.num_axes(), 4);
  CHECK_EQ(blob.count(), 60);
  CHECK_EQ(blob.count(1), 60);
  CHECK_EQ(blob.count(2, 4), 20);
  CHECK_EQ(blob.shape(-1), 5);
  CHECK_EQ(blob.shape()[1], 3);
  CHECK_EQ(blob.CanonicalAxisIndex(-2), 2);
  CHECK_EQ(blob.num() * blob.channels() * blob.height() * blob.width(), 60);
  CHECK_EQ(blob.LegacyShape(1), 3);
  CHECK_EQ(blob.offset(0, 2, 1, 3), 2 * 20 + 5 + 3);
  CHECK_EQ(blob.offset(vector<int>(2, 0)), 0);
  CHECK(Throws([&] { blob.shape(7); }));
  CHECK(Throws([&] { blob.Reshape(vector<int>(1, -3)); }));
  CHECK(Throws([&] { blob.Reshape(vector<int>(kMaxBlobAxes + 1, 1)); }));

  // Memory only grows, so a pointer stays valid when a blob shrinks.
  const float* const before = blob.mutable_cpu_data();
  blob.Reshape(vector<int>(1, 10));
  CHECK_EQ(blob.cpu_data(), before);
  CHECK_EQ(blob.num(), 10);
  CHECK_EQ(blob.channels(), 1);
  BlobShape shape;
  shape.add_dim(2);
  shape.add_dim(2);
  blob.Reshape(shape);
  for (int i = 0; i < 4; ++i) blob.mutable_cpu_data()[i] = i - 1.f;
  for (int i = 0; i < 4; ++i) blob.mutable_cpu_diff()[i] = 0.5f * i;
  CHECK_EQ(blob.asum_data(), 4);
  CHECK_EQ(blob.sumsq_data(), 6);
  CHECK_EQ(blob.asum_diff(), 3);
  CHECK_EQ(blob.sumsq_diff(), 3.5f);
  CHECK_EQ(blob.data_at(vector<int>{1, 0}), 1);
  CHECK_EQ(blob.diff_at(vector<int>{1, 1}), 1.5f);
  CHECK_EQ(blob.data_at(1, 1, 0, 0), 2);
  CHECK_EQ(blob.diff_at(0, 1, 0, 0), 0.5f);

  Blob<float> other(1, 1, 1, 1);
  other.ReshapeLike(blob);
  other.CopyFrom(blob);
  other.CopyFrom(blob, true);
  other.Update();
  CHECK_EQ(other.cpu_data()[3], 0.5f);
  CHECK_EQ(other.cpu_diff()[3], 1.5f);
  other.scale_data(2);
  other.scale_diff(4);
  CHECK_EQ(other.cpu_data()[3], 1);
  CHECK_EQ(other.cpu_diff()[3], 6);
  Blob<float> resized;
  CHECK(Throws([&] { resized.CopyFrom(blob); }));
  resized.CopyFrom(blob, false, true);
  CHECK_EQ(resized.cpu_data()[3], 2);

  BlobProto proto;
  blob.ToProto(&proto, true);
  CHECK_EQ(proto.shape().dim_size(), 2);
  Blob<double> from_proto;
  from_proto.FromProto(proto);
  CHECK_EQ(from_proto.cpu_data()[3], 2);
  CHECK_EQ(from_proto.cpu_diff()[3], 1.5);
  CHECK(from_proto.ShapeEquals(proto));
  from_proto.Reshape(vector<int>(1, 4));
  CHECK(!from_proto.ShapeEquals(proto));
  CHECK(Throws([&] { from_proto.FromProto(proto, false); }));
  BlobProto old_form;  // the form of mean files
  old_form.set_num(1);
  old_form.set_channels(1);
  old_form.set_height(2);
  old_form.set_width(2);
  for (int i = 0; i < 4; ++i) old_form.add_data(i);
  CHECK(blob.ShapeEquals(old_form));
  blob.FromProto(old_form);
  CHECK_EQ(blob.shape_string(), "1 1 2 2 (4)");

  Blob<float> sharer(vector<int>(1, 4));
  sharer.ShareData(blob);
  sharer.ShareDiff(blob);
  sharer.mutable_cpu_data()[0] = 9;
  CHECK_EQ(blob.cpu_data()[0], 9);
  CHECK_EQ(sharer.cpu_diff(), blob.cpu_diff());
  CHECK(Throws([&] { sharer.ShareData(Blob<float>(vector<int>(1, 5))); }));

  float mine[4] = {4, 3, 2, 1};
  blob.set_cpu_data(mine);
  CHECK_EQ(blob.cpu_data(), mine);
  CHECK_EQ(blob.data()->cpu_data(), static_cast<const void*>(mine));
  CHECK_EQ(blob.diff()->size(), 4 * sizeof(float));
  Blob<int> indices(vector<int>(1, 3));
  indices.mutable_cpu_data()[2] = 7;
  CHECK_EQ(indices.asum_data(), 7);

  SyncedMemory memory(8);
  CHECK_EQ(memory.head(), SyncedMemory::UNINITIALIZED);
  CHECK_EQ(static_cast<const char*>(memory.cpu_data())[7], 0);
  CHECK_EQ(memory.head(), SyncedMemory::HEAD_AT_CPU);
  memory.set_cpu_data(mine);
  CHECK_EQ(memory.mutable_cpu_data(), static_cast<void*>(mine));
#ifdef CPU_ONLY
  CHECK(Throws([&] { memory.gpu_data(); }));
  CHECK(Throws([&] { blob.mutable_gpu_diff(); }));
  CHECK(Throws([&] { blob.gpu_shape(); }));
#endif
}

class CountingCallback : public Net<float>::Callback {
 public:
  int count = 0;

 protected:
  virtual void run(int layer) { count += layer; }
};

// Memory that a program lends to an input; each pass reads it until the blob outgrows it.
void TourLentInput() {
  NetParameter param = NetFromText(kNet);
  param.mutable_state()->set_phase(TEST);
  Caffe::set_random_seed(7);
  Net<float> net(param);
  Blob<float>* const input = net.input_blobs()[0];
  float lent[6] = {1, -2, 3, 0.5f, -0.25f, 2};
  const auto forward = [&] {
    const Blob<float>& prob = *net.Forward()[0];
    return vector<float>(prob.cpu_data(), prob.cpu_data() + prob.count());
  };
  std::copy(lent, lent + 6, input->mutable_cpu_data());
  const vector<float> copied = forward();
  input->mutable_cpu_data()[0] = 5;
  input->set_cpu_data(lent);
  CHECK_EQ(input->cpu_data(), lent);
  CHECK(forward() == copied);
  lent[1] = 7;
  CHECK(forward() != copied);
  CHECK(Throws([&] { net.output_blobs()[0]->set_cpu_data(lent); }));
  CHECK(Throws([&] { input->set_cpu_data(nullptr); }));
  input->Reshape(vector<int>{3, 3});
  CHECK(input->cpu_data() != lent);
  input->Reshape(vector<int>{2, 3});
  CHECK(input->cpu_data() != lent);
}

void TourNet() {
  NetParameter param = NetFromText(kNet);
  param.mutable_state()->set_phase(TRAIN);
  NetParameter filtered;
  Net<float>::FilterNet(param, &filtered);
  CHECK_EQ(filtered.layer_size(), 5);
  NetStateRule rule;
  rule.set_phase(TEST);
  CHECK(!Net<float>::StateMeetsRule(param.state(), rule, "x"));

  Caffe::set_random_seed(7);
  Net<float> net(param);
  CHECK_EQ(net.name(), "tour");
  CHECK_EQ(net.phase(), TRAIN);
  CHECK_EQ(net.layer_names()[1], "fc");
  CHECK_EQ(net.layers().size(), 5u);
  CHECK_EQ(string(net.layers()[1]->type()), "InnerProduct");
  CHECK_EQ(net.blob_names()[0], "data");
  CHECK_EQ(net.blobs().size(), net.blob_names().size());
  CHECK_EQ(net.num_inputs(), 2);
  CHECK_EQ(net.num_outputs(), 1);
  CHECK_EQ(net.input_blob_indices()[1], 1);
  CHECK_EQ(net.output_blobs()[0], net.blobs()[net.output_blob_indices()[0]].get());
  CHECK(net.has_blob("fc") && !net.has_blob("cf"));
  CHECK(net.has_layer("relu") && net.layer_by_name("relu") == net.layers()[2]);
  const boost::shared_ptr<Blob<float> > fc = net.blob_by_name("fc");
  CHECK_EQ(fc.get(), net.blobs()[2].get());
  CHECK(!net.blob_by_name("nothing"));
  CHECK(!net.layer_by_name("nothing"));
  CHECK_EQ(net.bottom_vecs()[1][0], net.blobs()[0].get());
  CHECK_EQ(net.top_vecs()[1][0], fc.get());
  CHECK_EQ(net.top_ids(1)[0], 2);
  CHECK_EQ(net.bottom_ids(1)[0], 0);
  CHECK(!net.bottom_need_backward()[1][0] && net.bottom_need_backward()[3][0]);
  CHECK(!net.layer_need_backward()[0] && net.layer_need_backward()[1]);
  CHECK_EQ(net.blob_loss_weights()[net.output_blob_indices()[0]], 1);

  // fc and fc2 share their weights, so that there are 3 parameters and 2 to learn.
  CHECK_EQ(net.params().size(), 3u);
  CHECK_EQ(net.learnable_params().size(), 2u);
  CHECK_EQ(net.learnable_params()[0], net.params()[0].get());
  CHECK_EQ(net.param_owners()[0], -1);
  CHECK_EQ(net.param_owners()[2], 0);
  CHECK_EQ(net.param_names_index().find("w")->second, 0);
  CHECK_EQ(net.param_display_names()[1], "1");
  CHECK_EQ(net.params_lr()[1], 2);
  CHECK(net.has_params_lr()[1] && !net.has_params_decay()[0] && net.has_params_decay()[1]);
  CHECK_EQ(net.params_weight_decay()[1], 0);
  const vector<shared_ptr<Blob<float> > >& weights = net.layers()[1]->blobs();
  CHECK_EQ(weights.size(), 2u);
  CHECK_EQ(weights[0]->shape_string(), "3 3 (9)");
  CHECK_GT(weights[0]->asum_data(), 0);

  float* const data = net.input_blobs()[0]->mutable_cpu_data();
  float* const label = net.input_blobs()[1]->mutable_cpu_data();
  for (int i = 0; i < 6; ++i) data[i] = 0.25f * i;
  label[0] = 1;
  label[1] = 2;
  float loss = 0;
  CountingCallback before, after, before_back, after_back;
  net.add_before_forward(&before);
  net.add_after_forward(&after);
  net.add_before_backward(&before_back);
  net.add_after_backward(&after_back);
  CHECK_EQ(net.Forward(&loss)[0]->cpu_data()[0], loss);
  CHECK_EQ(before.count, 10);
  CHECK_EQ(after.count, 10);
  CHECK_GT(loss, 0);
  CHECK_EQ(net.ForwardPrefilled()[0]->cpu_data()[0], loss);
  CHECK_EQ(net.ForwardFromTo(0, 4), loss);
  CHECK_EQ(net.ForwardFrom(3), loss);
  CHECK_EQ(net.ForwardTo(2), 0);
  CHECK(Throws([&] { net.ForwardFromTo(0, 99); }));
  vector<Blob<float>*> inputs = net.input_blobs();
  CHECK_EQ(net.Forward(inputs, &loss)[0]->cpu_data()[0], loss);

  net.ClearParamDiffs();
  net.Backward();
  CHECK_GT(after_back.count, 0);
  const float once = net.params()[0]->asum_diff();
  CHECK_GT(once, 0);
  net.BackwardFromTo(4, 0);
  CHECK_NEAR(net.params()[0]->asum_diff(), 2 * once, 1e-4 * once);
  net.ClearParamDiffs();
  CHECK_EQ(net.params()[0]->asum_diff(), 0);
  net.BackwardFrom(4);
  net.ClearParamDiffs();
  net.BackwardTo(0);
  CHECK_NEAR(net.params()[0]->asum_diff(), once, 1e-4 * once);
  const float bias = weights[1]->cpu_data()[0], slope = weights[1]->cpu_diff()[0];
  net.Update();
  CHECK_EQ(weights[1]->cpu_data()[0], bias - slope);
  CHECK_NE(net.ForwardBackward(), loss);

  // A pointer from an earlier call shows the results of later passes, as in Caffe.
  const float* const shown = fc->cpu_data();
  const float first = shown[2];
  data[2] += 3;
  net.Forward();
  CHECK_NE(shown[2], first);
  CHECK_EQ(shown[2], fc->cpu_data()[2]);
  weights[1]->mutable_cpu_data()[2] += 1;
  net.set_debug_info(true);
  net.Forward();
  net.set_debug_info(false);

  NetParameter trained;
  net.ToProto(&trained, false);
  CHECK_EQ(trained.layer(1).blobs_size(), 2);
  WriteProtoToBinaryFile(trained, folder + "/net.caffemodel");
  net.ToHDF5(folder + "/net.caffemodel.h5");
  const vector<string> stages;
  Net<float> test(folder + "/net.prototxt", TEST, 0, &stages);
  CHECK_EQ(test.phase(), TEST);
  test.CopyTrainedLayersFrom(trained);
  CHECK_EQ(test.params()[0]->cpu_data()[4], weights[0]->cpu_data()[4]);
  const string files[] = {folder + "/net.caffemodel", folder + "/net.caffemodel.h5"};
  for (int i = 0; i < 2; ++i) {
    test.params()[0]->scale_data(0);
    test.CopyTrainedLayersFrom(files[i]);
    CHECK_EQ(test.params()[0]->cpu_data()[4], weights[0]->cpu_data()[4]);
  }
  test.CopyTrainedLayersFromBinaryProto(files[0]);
  test.CopyTrainedLayersFromHDF5(files[1]);
  test.ShareTrainedLayersWith(&net);
  weights[0]->mutable_cpu_data()[4] = 5;
  CHECK_EQ(test.params()[0]->cpu_data()[4], 5);
  test.ShareWeights();
  test.input_blobs()[0]->Reshape(vector<int>{5, 3});
  test.input_blobs()[1]->Reshape(vector<int>{5});
  test.Reshape();
  CHECK_EQ(test.blob_by_name("prob")->shape_string(), "5 3 (15)");
  test.Forward();
  CHECK_NEAR(test.blob_by_name("prob")->asum_data(), 5, 1e-4);
  CHECK(Throws([] { Net<float> none("/no/such/file", TEST); }));

  // In double, beyond the precision of float.
  Net<double> wide(folder + "/net.prototxt", TEST);
  wide.CopyTrainedLayersFrom(trained);
  wide.params()[1]->mutable_cpu_data()[0] = 1 + 1e-12;
  caffe_set(9, 0., wide.params()[0]->mutable_cpu_data());
  wide.Forward();
  CHECK_EQ(wide.blob_by_name("fc")->cpu_data()[0], 1 + 1e-12);
}

void TourLayers() {
  const vector<string> types = LayerRegistry<float>::LayerTypeList();
  CHECK(std::is_sorted(types.begin(), types.end()));
  CHECK(std::find(types.begin(), types.end(), "Convolution") != types.end());
  LayerParameter param;
  param.set_name("fc");
  param.set_type("InnerProduct");
  param.mutable_inner_product_param()->set_num_output(2);
  param.mutable_inner_product_param()->mutable_weight_filler()->set_type("constant");
  param.mutable_inner_product_param()->mutable_weight_filler()->set_value(2);
  const shared_ptr<Layer<double> > layer = LayerRegistry<double>::CreateLayer(param);
  Blob<double> bottom(3, 4, 1, 1), top;
  const vector<Blob<double>*> bottoms(1, &bottom), tops(1, &top);
  caffe_set(12, 1., bottom.mutable_cpu_data());
  layer->SetUp(bottoms, tops);
  CHECK_EQ(string(layer->type()), "InnerProduct");
  CHECK_EQ(layer->layer_param().name(), "fc");
  CHECK_EQ(top.shape_string(), "3 2 (6)");
  CHECK_EQ(layer->Forward(bottoms, tops), 0);
  CHECK_EQ(top.cpu_data()[5], 8);
  caffe_set(6, 1., top.mutable_cpu_diff());
  layer->Backward(tops, vector<bool>(1, true), bottoms);
  CHECK_EQ(bottom.cpu_diff()[0], 4);
  CHECK_EQ(layer->blobs()[0]->cpu_diff()[0], 3);
  CHECK(layer->param_propagate_down(0));
  layer->set_param_propagate_down(1, false);
  CHECK(!layer->param_propagate_down(1));
  layer->set_loss(0, 3);
  CHECK_EQ(layer->loss(0), 3);
  CHECK_EQ(layer->loss(1), 0);
  CHECK_EQ(layer->ExactNumBottomBlobs(), 1);
  CHECK_EQ(layer->ExactNumTopBlobs(), 1);
  CHECK_EQ(layer->MinBottomBlobs() + layer->MaxBottomBlobs(), -2);
  CHECK_EQ(layer->MinTopBlobs() + layer->MaxTopBlobs(), -2);
  CHECK(!layer->EqualNumBottomTopBlobs() && !layer->AutoTopBlobs());
  CHECK(layer->AllowForceBackward(0));
  LayerParameter written;
  layer->ToProto(&written, true);
  CHECK_EQ(written.blobs_size(), 2);
  const shared_ptr<Layer<double> > again = LayerRegistry<double>::CreateLayer(written);
  again->SetUp(bottoms, tops);
  CHECK_EQ(again->blobs()[0]->cpu_data()[0], 2);
  bottom.Reshape(5, 4, 1, 1);
  again->Forward(bottoms, tops);
  CHECK_EQ(top.shape_string(), "5 2 (10)");
  param.set_type("InerProduct");
  CHECK(Throws([&] { LayerRegistry<float>::CreateLayer(param); }));

  // A loss: its weight is in the diff of its top.
  LayerParameter loss_param;
  loss_param.set_type("EuclideanLoss");
  const shared_ptr<Layer<float> > loss = LayerRegistry<float>::CreateLayer(loss_param);
  Blob<float> a(1, 2, 1, 1), b(1, 2, 1, 1), value;
  vector<Blob<float>*> pair;
  pair.push_back(&a);
  pair.push_back(&b);
  const vector<Blob<float>*> result(1, &value);
  a.mutable_cpu_data()[0] = 4;
  loss->SetUp(pair, result);
  CHECK_EQ(value.cpu_diff()[0], 1);
  CHECK_EQ(loss->Forward(pair, result), 8);
  loss->Backward(result, vector<bool>{true, false}, pair);
  CHECK_EQ(a.cpu_diff()[0], 4);
}

void TourMemoryData() {
  const NetParameter param = NetFromText(
      "layer { name: 'd' type: 'MemoryData' top: 'data' top: 'label' transform_param { scale: 2 }\n"
      "  memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }\n");
  Net<float> net(param);
  const boost::shared_ptr<MemoryDataLayer<float> > layer =
      boost::dynamic_pointer_cast<MemoryDataLayer<float> >(
          boost::shared_ptr<Layer<float> >(net.layer_by_name("d")));
  CHECK(layer);
  CHECK_EQ(layer->batch_size() * layer->channels() * layer->height() * layer->width(), 6);
  float data[] = {1, 2, 3, 4, 5, 6}, labels[] = {7, 8};
  layer->Reset(data, labels, 2);
  net.Forward();
  CHECK_EQ(net.blob_by_name("data")->cpu_data()[5], 6);
  CHECK_EQ(net.blob_by_name("label")->cpu_data()[1], 8);
  CHECK(Throws([&] { layer->Reset(data, labels, 1); }));
  vector<Datum> datums(2);
  for (int i = 0; i < 2; ++i) {
    datums[i].set_channels(1);
    datums[i].set_height(1);
    datums[i].set_width(3);
    datums[i].set_data("abc");
    datums[i].set_label(i + 3);
  }
  layer->AddDatumVector(datums);
  net.Forward();
  CHECK_EQ(net.blob_by_name("data")->cpu_data()[4], 2 * 'b');
  CHECK_EQ(net.blob_by_name("label")->cpu_data()[0], 3);
}

class Watcher : public Solver<float>::Callback {
 public:
  int started = 0, ready = 0;

 protected:
  virtual void on_start() { ++started; }
  virtual void on_gradients_ready() { ++ready; }
};

SolverParameter SolverFromText(const string& more) {
  const string file = folder + "/solver.prototxt";
  std::ofstream(file.c_str()) << "base_lr: 0.5 lr_policy: 'fixed' momentum: 0.9 max_iter: 4\n"
                                 "random_seed: 3 snapshot_prefix: '"
                              << folder << "/tour'\n"
                              << more;
  SolverParameter param;
  ReadSolverParamsFromTextFileOrDie(file, &param);
  return param;
}

void TourSolver() {
  const string net_file = folder + "/trained.prototxt";
  std::ofstream(net_file.c_str())
      << "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param {\n"
         "  shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } data_filler { value: 1 } } }\n"
         "layer { name: 'fc' type: 'InnerProduct' bottom: 'x' top: 'fc'\n"
         "  inner_product_param { num_output: 1 } }\n"
         "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'fc' bottom: 'y' top: 'loss' }\n";
  const SolverParameter param = SolverFromText(
      "net: '" + net_file + "' test_iter: 1 test_interval: 100 test_initialization: false");
  CHECK(!SolverNeedsTypeUpgrade(param));
  const vector<string> types = SolverRegistry<float>::SolverTypeList();
  CHECK(std::find(types.begin(), types.end(), "Adam") != types.end());
  boost::shared_ptr<Solver<float> > solver(SolverRegistry<float>::CreateSolver(param));
  CHECK_EQ(string(solver->type()), "SGD");
  CHECK_EQ(solver->param().max_iter(), 4);
  CHECK_EQ(solver->iter(), 0);
  CHECK_EQ(solver->test_nets().size(), 1u);
  Watcher watcher;
  solver->add_callback(&watcher);
  CHECK_EQ(solver->callbacks().size(), 1u);
  solver->CheckSnapshotWritePermissions();
  solver->Step(2);
  CHECK_EQ(solver->iter(), 2);
  CHECK_EQ(watcher.started, 2);
  CHECK_EQ(watcher.ready, 2);
  const shared_ptr<Net<float> > net = solver->net();
  const Blob<float>& bias = *net->layers()[1]->blobs()[1];
  const float after_two = bias.cpu_data()[0];
  // h = 0.5, then 0.9 * 0.5 + 0.5 * (1 - prediction of 1.5), computed by hand.
  CHECK_NEAR(after_two, 0.5f + (0.9f * 0.5f - 0.25f), 1e-5);
  SGDSolver<float>* const sgd = dynamic_cast<SGDSolver<float>*>(solver.get());
  CHECK(sgd);
  CHECK_EQ(sgd->GetLearningRate(), 0.5f);
  CHECK_EQ(sgd->history().size(), 2u);
  CHECK_NEAR(-sgd->history()[1]->cpu_data()[0], 0.9f * 0.5f - 0.25f, 1e-5);
  solver->Snapshot();
  solver->Step(1);
  const float after_three = bias.cpu_data()[0];
  CHECK_NE(after_three, after_two);
  solver->Restore((folder + "/tour_iter_2.solverstate").c_str());
  CHECK_EQ(solver->iter(), 2);
  CHECK_EQ(bias.cpu_data()[0], after_two);
  solver->Solve();
  CHECK_EQ(solver->iter(), 4);
  net->ClearParamDiffs();
  net->ForwardBackward();
  solver->ApplyUpdate();

  // From a file, with signals.
  AdamSolver<double> adam(folder + "/solver.prototxt");
  CHECK_EQ(string(adam.type()), "Adam");
  SignalHandler handler(SolverAction::STOP, SolverAction::SNAPSHOT);
  adam.SetActionFunction(handler.GetActionFunction());
  CHECK_EQ(adam.GetRequestedAction(), SolverAction::NONE);
  std::raise(SIGINT);
  adam.Solve(string(""));
  CHECK_EQ(adam.iter(), 1);
  NesterovSolver<float> nesterov(param);
  AdaGradSolver<float> adagrad([&] {
    SolverParameter plain = param;
    plain.clear_momentum();
    return plain;
  }());
  CHECK_EQ(string(nesterov.type()) + adagrad.type(), "NesterovAdaGrad");
}

void TourCaffe() {
  Caffe::Get();
  Caffe::set_mode(Caffe::CPU);
  CHECK_EQ(Caffe::mode(), Caffe::CPU);
  Caffe::set_random_seed(11);
  const unsigned int first = caffe_rng_rand();
  Caffe::set_random_seed(11);
  CHECK_EQ(caffe_rng_rand(), first);
  Caffe::RNG own(5), same(5);
  CHECK_EQ((*static_cast<rng_t*>(own.generator()))(), (*static_cast<rng_t*>(same.generator()))());
  CHECK_NE(Caffe::rng_stream().generator(), own.generator());
  Caffe::SetDevice(0);
#ifdef CPU_ONLY
  CHECK(!Caffe::CheckDevice(0));
  CHECK_EQ(Caffe::FindDevice(), -1);
  CHECK(Throws([] { Caffe::DeviceQuery(); }));
#endif
  CHECK_EQ(Caffe::solver_count(), 1);
  Caffe::set_solver_count(2);
  Caffe::set_solver_rank(1);
  CHECK(!Caffe::root_solver());
  Caffe::set_solver_rank(0);
  Caffe::set_solver_count(1);
  CHECK(!Caffe::multiprocess());
  Caffe::set_multiprocess(false);
  vector<int> order(50);
  for (int i = 0; i < 50; ++i) order[i] = i;
  caffe::shuffle(order.begin(), order.end());
  CHECK(!std::is_sorted(order.begin(), order.end()));
  CHECK_EQ(format_int(42, 5), "00042");
  CPUTimer timer;
  timer.Start();
  timer.Stop();
  CHECK_GE(timer.MicroSeconds(), 0);
}

void TourIo() {
  string temporary;
  MakeTempDir(&temporary);
  string name;
  MakeTempFilename(&name);
  CHECK_NE(temporary, name);
  Datum datum;
  datum.set_label(5);
  const string file = folder + "/datum";
  WriteProtoToTextFile(datum, file);
  Datum read;
  CHECK(ReadProtoFromTextFile(file, &read));
  CHECK_EQ(read.label(), 5);
  NetParameter other;
  CHECK(!ReadProtoFromTextFile(file, &other));
  CHECK(Throws([&] { ReadProtoFromTextFileOrDie(file, &other); }));
  CHECK(Throws([&] { ReadProtoFromTextFile("/no/such/file", &other); }));
  WriteProtoToBinaryFile(datum, file.c_str());
  CHECK(ReadProtoFromBinaryFile(file, &read));
  ReadProtoFromBinaryFileOrDie(file.c_str(), &read);
  CHECK_EQ(read.label(), 5);
  CHECK(ReadFileToDatum(file, 3, &read));
  CHECK(read.encoded());
  CHECK_EQ(read.label(), 3);
  CHECK(!ReadFileToDatum("/no/such/file", &read));

  const string image = folder + "/image.ppm";  // 1 x 2 pixels, red and blue
  std::ofstream(image.c_str(), std::ios::binary)
      << "P6 2 1 255\n"
      << "\xff" << '\0' << '\0' << '\0' << '\0' << "\xff";
  CHECK(ReadImageToDatum(image, 1, &read));
  CHECK_EQ(read.channels() * 100 + read.height() * 10 + read.width(), 312);
  CHECK_EQ(read.data(), string("\0\xff\0\0\xff\0", 6));  // planes B, G, R
  CHECK(ReadImageToDatum(image, 1, 4, 8, false, &read));
  CHECK_EQ(read.channels() * 100 + read.height() * 10 + read.width(), 148);
  CHECK(ReadImageToDatum(image, 1, 0, 0, true, "png", &read));
  CHECK(read.encoded());
  Datum decoded = read;
  CHECK(DecodeDatumNative(&decoded));
  CHECK_EQ(decoded.data(), string("\0\xff\0\0\xff\0", 6));
  CHECK(DecodeDatum(&read, false));
  CHECK_EQ(read.channels(), 1);
  CHECK(!DecodeDatum(&read, false));
  CHECK(!ReadImageToDatum(folder + "/no.png", 1, &read));

  NetParameter old;
  old.add_layers()->set_type(V1LayerParameter::RELU);
  CHECK(NetNeedsUpgrade(old));
  CHECK(UpgradeNetAsNeeded("old", &old));
  CHECK_EQ(old.layer(0).type(), "ReLU");
  WriteProtoToBinaryFile(old, file);
  ReadNetParamsFromBinaryFileOrDie(file, &other);
  CHECK_EQ(other.layer_size(), 1);
  SolverParameter solver;
  solver.set_solver_type(SolverParameter::ADAM);
  CHECK(SolverNeedsTypeUpgrade(solver) && UpgradeSolverAsNeeded("old", &solver));
  CHECK_EQ(solver.type(), "Adam");
}

void TourDatabases() {
  const char* const kinds[] = {"lmdb", "leveldb"};
  for (int i = 0; i < 2; ++i) {
    const string source = folder + "/" + kinds[i];
    const boost::shared_ptr<db::DB> made(db::GetDB(kinds[i]));
    made->Open(source, db::NEW);
    shared_ptr<db::Transaction> transaction(made->NewTransaction());
    transaction->Put("b", "two");
    transaction->Put("a", "one");
    transaction->Commit();
    made->Close();
    shared_ptr<db::DB> read(db::GetDB(i == 0 ? DataParameter::LMDB : DataParameter::LEVELDB));
    read->Open(source, db::READ);
    shared_ptr<db::Cursor> cursor(read->NewCursor());
    CHECK_EQ(cursor->key() + cursor->value(), "aone");
    cursor->Next();
    CHECK_EQ(cursor->key() + cursor->value(), "btwo");
    cursor->Next();
    CHECK(!cursor->valid());
    cursor->SeekToFirst();
    CHECK(cursor->valid());
    CHECK(Throws([&] { read->Open(folder + "/no_db", db::READ); }));
    CHECK(Throws([&] { read->Open(source, db::WRITE); }));
  }
}

void TourHdf5() {
  const string file = folder + "/tour.h5";
  const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  Blob<float> blob(vector<int>{2, 3}), read;
  for (int i = 0; i < 6; ++i) blob.mutable_cpu_data()[i] = i;
  hdf5_save_nd_dataset(id, "values", blob);
  hdf5_save_int(id, "one", 41);
  hdf5_save_string(id, "text", "words");
  CHECK_EQ(hdf5_get_num_links(id), 3);
  CHECK_EQ(hdf5_get_name_by_idx(id, 0), "one");
  hdf5_load_nd_dataset(id, "values", 1, 4, &read, true);
  CHECK_EQ(read.shape_string(), "2 3 (6)");
  CHECK_EQ(read.cpu_data()[5], 5);
  CHECK(Throws([&] { hdf5_load_nd_dataset(id, "values", 3, 4, &read); }));
  CHECK_EQ(hdf5_load_int(id, "one"), 41);
  CHECK_EQ(hdf5_load_string(id, "text"), "words");
  H5Fclose(id);
}

template <typename Dtype>
void TourMath() {
  const Dtype a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 1, 0, 3};
  Dtype c[6] = {1, 1, 1, 1, 1, 1}, y[6];
  caffe_cpu_gemm<Dtype>(CblasNoTrans, CblasTrans, 2, 2, 3, 1, a, b, 1, c);  // 2x3 times 3x2
  CHECK_EQ(c[0] * 1000 + c[1] * 100 + c[2] * 10 + c[3], 8000 + 1100 + 170 + 23);
  caffe_cpu_gemv<Dtype>(CblasTrans, 2, 3, 1, a, b, 0, y);
  CHECK_EQ(y[0] + y[1] + y[2], 6);
  caffe_copy(6, a, y);
  caffe_axpy<Dtype>(6, 2, b, y);
  CHECK_EQ(y[5], 12);
  caffe_cpu_axpby<Dtype>(6, 1, a, -1, y);
  CHECK_EQ(y[5], -6);
  caffe_scal<Dtype>(6, -1, y);
  CHECK_EQ(y[5], 6);
  caffe_cpu_scale<Dtype>(6, 3, a, y);
  CHECK_EQ(y[1], 6);
  caffe_set<Dtype>(6, 4, y);
  caffe_add_scalar<Dtype>(6, 1, y);
  CHECK_EQ(y[0], 5);
  caffe_add(6, a, b, y);
  CHECK_EQ(y[5], 9);
  caffe_sub(6, a, b, y);
  CHECK_EQ(y[5], 3);
  caffe_mul(6, a, b, y);
  CHECK_EQ(y[5], 18);
  caffe_div(6, b, a, y);
  CHECK_EQ(y[5], Dtype(0.5));
  caffe_powx<Dtype>(6, a, 2, y);
  CHECK_EQ(y[5], 36);
  caffe_sqrt(6, y, y);
  CHECK_EQ(y[5], 6);
  caffe_sqr(6, a, y);
  CHECK_EQ(y[2], 9);
  caffe_exp(6, b, y);
  caffe_log(6, y, y);
  CHECK_NEAR(y[5], 3, 1e-5);
  caffe_cpu_scale<Dtype>(6, -1, a, y);
  caffe_cpu_sign(6, y, c);
  CHECK_EQ(c[0], -1);
  caffe_abs(6, y, y);
  CHECK_EQ(y[5], 6);
  CHECK_EQ(caffe_cpu_dot(6, a, b), 1 + 6 + 4 + 18);
  CHECK_EQ(caffe_cpu_strided_dot(3, a, 2, b, 2), 1 + 6 + 0);
  CHECK_EQ(caffe_cpu_asum(6, a), 21);
  CHECK_EQ(caffe_sign(Dtype(-2)), -1);
  caffe_memset(sizeof(y), 0, y);
  CHECK_EQ(y[3], 0);

  const int n = 20000;
  vector<Dtype> draws(n);
  Caffe::set_random_seed(1);
  caffe_rng_uniform<Dtype>(n, -1, 3, draws.data());
  CHECK_NEAR(std::accumulate(draws.begin(), draws.end(), Dtype(0)) / n, 1, 0.05);
  caffe_rng_gaussian<Dtype>(n, 5, 2, draws.data());
  CHECK_NEAR(std::accumulate(draws.begin(), draws.end(), Dtype(0)) / n, 5, 0.1);
  vector<int> coins(n);
  caffe_rng_bernoulli<Dtype>(n, 0.25, coins.data());
  CHECK_NEAR(std::accumulate(coins.begin(), coins.end(), 0) / double(n), 0.25, 0.02);

  // Windows of 2x2 with stride 1 in an image of 3x3; on the way back, each pixel counts its
  // windows.
  Dtype image[9], columns[16];
  for (int i = 0; i < 9; ++i) image[i] = i;
  im2col_cpu<Dtype>(image, 1, 3, 3, 2, 2, 0, 0, 1, 1, 1, 1, columns);
  CHECK_EQ(columns[0] + columns[3], 0 + 4);
  CHECK_EQ(columns[15], 8);
  caffe_set<Dtype>(16, 1, columns);
  col2im_cpu<Dtype>(columns, 1, 3, 3, 2, 2, 0, 0, 1, 1, 1, 1, image);
  CHECK_EQ(image[4] * 100 + image[1] * 10 + image[0], 421);
}

void TourFillers() {
  FillerParameter param;
  Blob<float> blob(2, 3, 4, 4);
  param.set_type("constant");
  param.set_value(3);
  shared_ptr<Filler<float> > filler(GetFiller<float>(param));
  filler->Fill(&blob);
  CHECK_EQ(blob.asum_data(), 3 * 96);
  param.set_min(2);
  param.set_max(4);
  UniformFiller<float>(param).Fill(&blob);
  CHECK_NEAR(blob.asum_data(), 3 * 96, 30);
  const float first = blob.cpu_data()[0];
  UniformFiller<float>(param).Fill(&blob);
  CHECK_NE(blob.cpu_data()[0], first);
  XavierFiller<float>(param).Fill(&blob);
  MSRAFiller<float>(param).Fill(&blob);
  PositiveUnitballFiller<float>(param).Fill(&blob);
  CHECK_NEAR(blob.asum_data(), 2, 1e-4);
  param.set_type("nonsense");
  filler.reset(GetFiller<float>(param));
  CHECK(Throws([&] { filler->Fill(&blob); }));
}

void TourTransformer() {
  TransformationParameter param;
  param.set_crop_size(1);
  param.set_scale(0.5);
  param.add_mean_value(10);
  DataTransformer<float> transformer(param, TEST);
  transformer.InitRand();
  Datum datum;
  datum.set_channels(1);
  datum.set_height(3);
  datum.set_width(3);
  datum.set_data(string("\1\2\3\4\x1e\6\7\10\11", 9));
  CHECK_EQ(transformer.InferBlobShape(datum)[2], 1);
  Blob<float> out(transformer.InferBlobShape(datum));
  transformer.Transform(datum, &out);
  CHECK_EQ(out.cpu_data()[0], 10);  // (30 - 10) / 2, at the centre
  const vector<Datum> datums(2, datum);
  CHECK_EQ(transformer.InferBlobShape(datums)[0], 2);
  out.Reshape(transformer.InferBlobShape(datums));
  transformer.Transform(datums, &out);
  CHECK_EQ(out.cpu_data()[1], 10);
  Blob<float> images(1, 1, 3, 3);
  images.mutable_cpu_data()[4] = 20;
  transformer.Transform(&images, &out);
  CHECK_EQ(out.cpu_data()[0], 5);
  param.set_crop_size(9);
  DataTransformer<float> large(param, TEST);
  CHECK(Throws([&] { large.InferBlobShape(datum); }));
  param.set_rotation(5);  // it does not rotate images, and says so
  CHECK(Throws([&] { DataTransformer<float> turning(param, TEST); }));
}

class Worker : public InternalThread {
 public:
  ~Worker() { StopInternalThread(); }
  BlockingQueue<int> numbers;

 protected:
  virtual void InternalThreadEntry() {
    for (int i = 0; !must_stop() && i < 3; ++i) numbers.push(i);
  }
};

void TourThreads() {
  Worker worker;
  CHECK(!worker.is_started());
  worker.StartInternalThread();
  CHECK(worker.is_started());
  CHECK_EQ(worker.numbers.pop("waiting"), 0);
  CHECK_EQ(worker.numbers.peek(), 1);
  CHECK_EQ(worker.numbers.pop() + worker.numbers.pop(), 3);
  int number;
  CHECK(!worker.numbers.try_pop(&number) && !worker.numbers.try_peek(&number));
  CHECK_EQ(worker.numbers.size(), 0u);
  worker.StopInternalThread();
}

}  // namespace

int main(int argc, char** argv) {
  GlobalInit(&argc, &argv);
  CHECK_EQ(argc, 2) << "usage: api_tour FOLDER";
  folder = argv[1];
  TourCaffe();
  TourBlob();
  TourMath<float>();
  TourMath<double>();
  TourFillers();
  TourLayers();
  TourNet();
  TourLentInput();
  TourMemoryData();
  TourSolver();
  TourIo();
  TourDatabases();
  TourHdf5();
  TourTransformer();
  TourThreads();
  LOG(INFO) << "The tour has ended.";
  return 0;
}
