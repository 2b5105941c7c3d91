// Writes the values of a net's blob, batch by batch, to a database, as programs for Caffe do.
//
//   extract_features WEIGHTS NET_PROTOTXT BLOB DATABASE BATCHES BACKEND
#include <string>
#include <vector>

#include "boost/algorithm/string.hpp"
#include "boost/shared_ptr.hpp"
#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/util/db.hpp"
#include "caffe/util/format.hpp"
#include "caffe/util/io.hpp"

using caffe::Blob;
using caffe::Caffe;
using caffe::Datum;
using caffe::Net;
using std::string;
namespace db = caffe::db;

template <typename Dtype>
int feature_extraction_pipeline(char** argv) {
  Caffe::set_mode(Caffe::CPU);
  const string weights(argv[1]), net_file(argv[2]), blob_name(argv[3]);
  boost::shared_ptr<Net<Dtype> > net(new Net<Dtype>(net_file, caffe::TEST));
  net->CopyTrainedLayersFrom(weights);
  CHECK(net->has_blob(blob_name)) << "Unknown feature blob name " << blob_name;

  boost::shared_ptr<db::DB> feature_db(db::GetDB(argv[6]));
  feature_db->Open(argv[4], db::NEW);
  boost::shared_ptr<db::Transaction> txn(feature_db->NewTransaction());
  Datum datum;
  int image_index = 0;
  for (int batch_index = 0; batch_index < atoi(argv[5]); ++batch_index) {
    net->Forward();
    const boost::shared_ptr<Blob<Dtype> > feature_blob = net->blob_by_name(blob_name);
    const int batch_size = feature_blob->num();
    const int dim_features = feature_blob->count() / batch_size;
    for (int n = 0; n < batch_size; ++n) {
      datum.set_height(feature_blob->height());
      datum.set_width(feature_blob->width());
      datum.set_channels(feature_blob->channels());
      datum.clear_data();
      datum.clear_float_data();
      const Dtype* feature_blob_data = feature_blob->cpu_data() + feature_blob->offset(n);
      for (int d = 0; d < dim_features; ++d) datum.add_float_data(feature_blob_data[d]);
      string out;
      CHECK(datum.SerializeToString(&out));
      txn->Put(caffe::format_int(image_index, 10), out);
      if (++image_index % 1000 == 0) {
        txn->Commit();
        txn.reset(feature_db->NewTransaction());
      }
    }
  }
  if (image_index % 1000 != 0) txn->Commit();
  feature_db->Close();
  LOG(ERROR) << "Successfully extracted the features!";
  return 0;
}

int main(int argc, char** argv) {
  ::google::InitGoogleLogging(argv[0]);
  CHECK_EQ(argc, 7);
  return feature_extraction_pipeline<float>(argv);
}
