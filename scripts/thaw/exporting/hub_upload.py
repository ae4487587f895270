"""An export on the Hugging Face Hub: a model repository with the folder's files and its card.

The user asks for it by `thaw export --push`; no step of the workflow does it.
"""

from pathlib import Path

from thaw.core.errors import UserError


def push(folder: Path, repository: str, private: bool, endpoint: str | None = None) -> str:
    """Upload a folder that `export` wrote, as one commit, and return the address of the repository.

    Args: folder; owner/name, made where it is not there; whether it is made private; address of the Hub, by default
    that of HF_ENDPOINT or huggingface.co. Raises UserError where the Hub refuses it or cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    api = HfApi(endpoint=endpoint)
    try:
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=str(address.repo_id), folder_path=folder, commit_message="Upload by thaw export")
    except HFValidationError as error:
        raise UserError(f"--push {repository}: expected owner/name, as me/my-model") from error
    except Exception as error:  # of many kinds: no token, no right, no network
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"--push {repository}: {folder} is written, but not uploaded ({reason}); set HF_TOKEN to a token that may "
            "write there, or log in with `hf auth login`, and upload the folder"
        ) from error
    return str(address)
