//! The memory of a replay: a block on the device for each block of the recording, and host memory for every other address.

use std::collections::{BTreeMap, HashMap};

use oarlock_host::{DeviceBlock, PluginDevice, PluginFailure};

/// The memory of a replay.
pub(super) struct ReplayMemory {
    device: PluginDevice,
    /// By plugin and handle.
    blocks: HashMap<(String, u64), DeviceBlock>,
    /// Memory of the recorded program, by address.
    host: BTreeMap<u64, Vec<u8>>,
    host_bytes: usize,
}

/// Host memory that is kept is not larger in all.
const MAX_HOST_BYTES: usize = 1 << 32;

impl ReplayMemory {
    pub(super) fn new(device: &PluginDevice) -> Self {
        Self { device: device.clone(), blocks: HashMap::new(), host: BTreeMap::new(), host_bytes: 0 }
    }

    pub(super) fn allocate_block(&mut self, plugin: &str, handle: u64, size: u64) -> Result<(), String> {
        // A recording may say anything, and not every device refuses what is too large.
        let used = self.blocks.values().map(DeviceBlock::size).fold(size, u64::saturating_add);
        let total = self.device.memory_stats().map_err(|failure| failure.to_string())?.total;
        if used > total {
            return Err("its block does not fit into the memory of the device".to_owned());
        }
        let block = self.device.allocate(size).map_err(|failure| failure.to_string())?;
        self.blocks.insert((plugin.to_owned(), handle), block);
        Ok(())
    }

    pub(super) fn free_block(&mut self, plugin: &str, handle: u64) {
        self.blocks.remove(&(plugin.to_owned(), handle));
    }

    /// A block of the plugin or, for kernels that run on the device of another, of any.
    fn find_key(&self, plugin: &str, handle: u64) -> Option<(String, u64)> {
        let own = (plugin.to_owned(), handle);
        if self.blocks.contains_key(&own) {
            return Some(own);
        }
        self.blocks.keys().find(|(_, known)| *known == handle).cloned()
    }

    /// Reads bytes; `None` if the recording does not say what was there.
    pub(super) fn read_bytes(
        &self,
        plugin: &str,
        block: u64,
        offset: u64,
        size: u64,
    ) -> Result<Option<Vec<u8>>, PluginFailure> {
        if let Some(known) = self.find_key(plugin, block).and_then(|key| self.blocks.get(&key)) {
            if offset.checked_add(size).is_none_or(|end| end > known.size()) {
                return Ok(None);
            }
            let mut bytes = vec![0; size as usize];
            return known.read_bytes(offset, &mut bytes).map(|()| Some(bytes));
        }
        let address = block.wrapping_add(offset);
        let Some((start, bytes)) = self.host.range(..=address).next_back() else { return Ok(None) };
        let begin = (address - start) as usize;
        let end = begin.checked_add(size as usize);
        Ok(end.and_then(|end| bytes.get(begin..end)).map(<[u8]>::to_vec))
    }

    /// Writes bytes; false if they do not fit.
    pub(super) fn write_bytes(
        &mut self,
        plugin: &str,
        block: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<bool, PluginFailure> {
        if let Some(known) = self.find_key(plugin, block).and_then(|key| self.blocks.get_mut(&key)) {
            if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > known.size()) {
                return Ok(false);
            }
            return known.write_bytes(offset, bytes).map(|()| true);
        }
        if self.host_bytes.saturating_add(bytes.len()) > MAX_HOST_BYTES {
            self.host.clear();
            self.host_bytes = 0;
        }
        self.host_bytes += bytes.len();
        let before = self.host.insert(block.wrapping_add(offset), bytes.to_vec());
        self.host_bytes -= before.map_or(0, |before| before.len());
        Ok(true)
    }

    /// Fills bytes; false if they do not fit.
    pub(super) fn fill_bytes(
        &mut self,
        plugin: &str,
        block: u64,
        offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<bool, PluginFailure> {
        match self.find_key(plugin, block).and_then(|key| self.blocks.get_mut(&key)) {
            Some(known) if offset.checked_add(size).is_some_and(|end| end <= known.size()) => {
                known.fill_bytes(offset, byte, size).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Copies between two blocks; false if one is not there, or the bytes do not fit.
    pub(super) fn copy_bytes(
        &mut self,
        plugin: &str,
        target: (u64, u64),
        source: (u64, u64),
        size: u64,
    ) -> Result<bool, PluginFailure> {
        let keys = (self.find_key(plugin, target.0), self.find_key(plugin, source.0));
        let (Some(target_key), Some(source_key)) = keys else { return Ok(false) };
        let fits = |key: &(String, u64), offset: u64| {
            let block = self.blocks.get(key);
            block.is_some_and(|block| offset.checked_add(size).is_some_and(|end| end <= block.size()))
        };
        if !fits(&target_key, target.1) || !fits(&source_key, source.1) {
            return Ok(false);
        }
        if target_key == source_key {
            let bytes = self.read_bytes(plugin, source.0, source.1, size)?.unwrap_or_default();
            return self.write_bytes(plugin, target.0, target.1, &bytes);
        }
        // Two blocks of one map: the target leaves it for the time of the copy.
        let Some(mut block) = self.blocks.remove(&target_key) else { return Ok(false) };
        let copied = match self.blocks.get(&source_key) {
            Some(source_block) => block.copy_from(target.1, source_block, source.1, size).map(|()| true),
            None => Ok(false),
        };
        self.blocks.insert(target_key, block);
        copied
    }
}
