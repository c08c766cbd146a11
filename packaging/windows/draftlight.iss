; Inno Setup: an installer for this user, without an administrator's rights. Not yet run.
; iscc /DVersion=0.1.0 /DName=Draftlight-0.1.0-windows-amd64-cpu packaging\windows\draftlight.iss
[Setup]
AppId={{B0C6B2E4-5E0E-4D0F-9C27-6C8F0E6B7A51}
AppName=Draftlight
AppVersion={#Version}
AppPublisher=Draftlight
DefaultDirName={autopf}\Draftlight
DefaultGroupName=Draftlight
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
LicenseFile=..\..\LICENSE
SetupIconFile=..\..\build\draftlight\made\draftlight.ico
UninstallDisplayIcon={app}\Draftlight.exe
OutputDir=..\..\dist
OutputBaseFilename={#Name}-setup
Compression=lzma2
SolidCompression=yes
ChangesAssociations=yes
CloseApplications=yes

[Tasks]
Name: gguf; Description: "Offer Draftlight for GGUF files"
Name: desktop; Description: "Put a shortcut on the desktop"; Flags: unchecked

[InstallDelete]
; Of the version before: a library that is no longer wanted must not be found.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "..\..\dist\Draftlight\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{group}\Draftlight"; Filename: "{app}\Draftlight.exe"
Name: "{autodesktop}\Draftlight"; Filename: "{app}\Draftlight.exe"; Tasks: desktop

[Registry]
Root: HKCU; Subkey: "Software\Classes\Draftlight.gguf"; ValueType: string; ValueData: "GGUF model"; Flags: uninsdeletekey; Tasks: gguf
Root: HKCU; Subkey: "Software\Classes\Draftlight.gguf\DefaultIcon"; ValueType: string; ValueData: "{app}\Draftlight.exe,0"; Tasks: gguf
Root: HKCU; Subkey: "Software\Classes\Draftlight.gguf\shell\open\command"; ValueType: string; ValueData: """{app}\Draftlight.exe"" ""%1"""; Tasks: gguf
Root: HKCU; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "Draftlight.gguf"; Flags: uninsdeletevalue; Tasks: gguf

[Run]
Filename: "{app}\Draftlight.exe"; Description: "Start Draftlight"; Flags: nowait postinstall skipifsilent
