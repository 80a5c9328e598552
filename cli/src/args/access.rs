//! Grants and tokens.

use clap::{Args, Subcommand};
use lakebell_domain::access::Right;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{ProjectCode, TokenId};

/// `grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List grants, and what is asked for
    List,
    /// Let another project read an asset and depend on it
    Give {
        /// The asset
        key: AssetKey,
        /// The other project
        #[arg(long, value_name = "CODE")]
        to: ProjectCode,
    },
    /// Take a grant back, or refuse what is asked for
    TakeBack {
        /// The asset
        key: AssetKey,
        /// The other project
        #[arg(long, value_name = "CODE")]
        from: ProjectCode,
    },
}

/// `tokens`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Make a token; it is shown this once
    Create(TokenArgs),
    /// List tokens and what they may do
    List,
    /// Give a token a new secret, which is shown this once
    Rotate {
        /// Its id, as `list` shows it
        id: TokenId,
        /// How long the old secret stays good, in hours
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        overlap: u16,
    },
    /// End a token at once
    Revoke {
        /// Its id, as `list` shows it
        id: TokenId,
    },
}

/// `tokens create`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// What it is for, in a few words
    pub(crate) name: String,
    /// What it may do: read, evidence, declare, operate, sensor, admin
    #[arg(long, value_name = "RIGHT", value_delimiter = ',', required = true)]
    pub(crate) rights: Vec<Right>,
    /// How long it is good, in days
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    pub(crate) life: u16,
    /// For writers that cannot set headers: it stands in the path
    #[arg(long, conflicts_with = "principal")]
    pub(crate) path: bool,
    /// For an AWS role or user whose signature the gateway checks: it has no secret
    #[arg(long, value_name = "ARN")]
    pub(crate) principal: Option<String>,
    /// Each request must be signed as well (Standard Webhooks)
    #[arg(long)]
    pub(crate) signed: bool,
}
