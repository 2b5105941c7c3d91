"""A runtime of MLServer that asks onnxruntime, for peer_serving.py."""
import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class OnnxModel(MLModel):
    async def load(self):
        self._session = onnxruntime.InferenceSession(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        values = {one.name: NumpyCodec.decode_input(one).astype(np.float32) for one in payload.inputs}
        names = [one.name for one in self._session.get_outputs()]
        outputs = [NumpyCodec.encode_output(name, value) for name, value in zip(names, self._session.run(names, values))]
        return InferenceResponse(model_name=self.name, outputs=outputs)
