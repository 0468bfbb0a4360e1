"""Names that are loaded on first use, so that importing the package takes no time: those of its modules, and methods of arrays."""

from __future__ import annotations

MODULES = {
    "_aliases": """
        absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh around bitwise_not cat clamp concatenate
        conjugate degrees fix invert left_shift mod permute power radians right_shift rint tensor true_divide unsqueeze
    """,
    "_calculus": "convolve correlate ediff1d gradient interp trapezoid unwrap",
    "_comparison": """
        allclose array_equal array_equiv isclose iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar
    """,
    "_control_flow": "cond while_loop",
    "_creation": """
        arange array ascontiguousarray astype copy empty empty_like eye full full_like linspace meshgrid ones_like tril triu
        zeros_like
    """,
    "_diagonal": "diag diagflat diagonal trace",
    "_editing": "delete insert trim_zeros",
    "_einsum": "einsum",
    "_elementwise": "clip positive round square",
    "_grids": "c_ mgrid ogrid r_ s_",
    "_histogram": "bincount digitize histogram histogram2d histogram_bin_edges",
    "_indexing": """
        apply_along_axis argwhere choose compress diag_indices extract flatnonzero ix_ lexsort ndenumerate ndindex piecewise
        ravel_multi_index select tril_indices tril_indices_from triu_indices triu_indices_from unravel_index
    """,
    "_information": "__array_namespace_info__ can_cast finfo iinfo isdtype promote_types",
    "_jit": "JitFunction jit",
    "_joining": "append block column_stack dstack hstack vstack",
    "_linear": "cross matrix_transpose tensordot vecdot",
    "_load": "load",
    "_manipulation": """
        broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis repeat roll squeeze stack tile unstack
    """,
    "_mathematics": "angle cbrt deg2rad divmod exp2 fabs float_power fmax fmin fmod heaviside modf nan_to_num rad2deg sinc",
    "_nan_statistics": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "_npy": "save savez savez_compressed",
    "_order_statistics": "argpartition median nanmedian nanpercentile nanquantile partition percentile quantile topk",
    "_padding": "pad",
    "_polynomials": "polyadd polyder polyfit polyint polymul polysub polyval roots",
    "_printing": "get_printoptions printoptions set_printoptions",
    "_products": "dot inner kron outer vdot",
    "_search": """
        UniqueAll UniqueCounts UniqueInverse argmax argmin argsort isin nonzero searchsorted sort take take_along_axis
        unique_all unique_counts unique_inverse unique_values where
    """,
    "_sequences": "fromfunction geomspace identity indices logspace tri vander",
    "_sets": "in1d intersect1d setdiff1d setxor1d union1d unique",
    "_shapes": """
        atleast_1d atleast_2d atleast_3d flatten fliplr flipud ndim ravel reshape rot90 shape size swapaxes transpose
    """,
    "_splitting": "array_split chunk dsplit hsplit split vsplit",
    "_statistics": """
        all any count_nonzero cumprod cumsum cumulative_prod cumulative_sum diff max mean min prod ptp std sum var
    """,
    "_text_files": "genfromtxt loadtxt savetxt",
    "_weighted": "average corrcoef cov",
    "_windows": "bartlett blackman hamming hanning",
    "_writing": "copyto fill_diagonal put put_along_axis putmask",
}
"""The public names of each module."""

LOADED_ON_USE = {name: module for module, names in MODULES.items() for name in names.split()}
"""The module of each public name."""

PARTS = set("device extension fft linalg nn onnx_backend onnxruntime openvino paddle_inference profiler random tflite".split())
"""The public modules."""

METHODS = set("""
    _repr_html_ abs absolute acos acosh add add_ all allclose amax amin any arccos arcsin arctan argmax argmin
    argpartition argsort argwhere asin asinh atan atan2 atanh bfloat16 bitwise_and bitwise_or bitwise_xor bmm bool ceil
    choose chunk clamp clamp_ clip clone compress conj conjugate contiguous copy copy_ cos cosh count_nonzero cpu cuda
    cumprod cumsum detach diagonal diff dim div div_ divide dot double element_size eq exp expand expand_as expm1 fill
    fill_ flatten flip float floor gather ge gt half imag index_select inner int is_contiguous is_floating_point isclose
    isfinite isinf isnan itemsize le log log10 log1p log2 log_softmax logical_and logical_not logical_or logical_xor
    logsumexp long lt masked_fill masked_select matmul max maximum mean min minimum mm moveaxis mul mul_
    multiply narrow ne neg negative nelement nonzero norm numel outer permute pow prod ptp quantile ravel real
    reciprocal relu remainder repeat repeat_interleave reshape_as roll round rsqrt scatter scatter_add searchsorted
    sigmoid sign sin sinh softmax sort split sqrt square squeeze std sub sub_ subtract sum swapaxes t take tan tanh
    tensordot tile to tobytes topk trace transpose tril triu trunc type_as unbind unique unsqueeze var vecdot view
    view_as where zero_
""".split())
"""The methods and properties that arrays get from Python."""
